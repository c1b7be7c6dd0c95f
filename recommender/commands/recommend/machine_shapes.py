"""`recommend --shapes`: the machines that node groups should have for the pods of a history or of the present."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.documents.tree import DocumentError
from adapter.foundation.files.file_contents import FilesError, read_each, sole_content
from adapter.foundation.reports.documents import json_text
from adapter.foundation.service.flags.parsing import UsageError
from recommender.backtest.progress import ProgressLine
from recommender.commands.recommend.shape_flags import has_past
from recommender.commands.replay.past import chosen_settings, read_past
from recommender.kinds.cluster_size.known_cluster import CONTROLLERS
from recommender.kinds.cluster_size.node_groups.discover import node_groups
from recommender.kinds.cluster_size.scale_down.disruptions import RemainingDisruptions
from recommender.kinds.cluster_size.scale_down.drainability import DrainRules
from recommender.shapes.catalogue import ShapeCatalogue, read_catalogue
from recommender.shapes.choice import NoChoice
from recommender.shapes.document import shapes_document, shapes_text
from recommender.shapes.peaks import History, history_of_now, history_of_recording
from recommender.shapes.report import ShapeReport, shape_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.inputs import Inputs
    from recommender.kinds.cluster_size.model.groups import NodeGroups
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings


def recommend_shapes(
    path: Path, values: FlagValues, configuration: Configuration, inputs: Callable[[], Inputs]
) -> bool:
    """Print the machines, and return whether there are any. `inputs` reads the current cluster.

    Raises UsageError, and the errors of reading a history or a cluster.
    """
    catalogue = _catalogue(path)
    names = values.texts("recommendation")
    settings = chosen_settings(names[0] if names else "", configuration)
    with closing(ProgressLine()) as line:
        history, groups, rules = (
            _past(values, configuration, settings, line.show)
            if has_past(values)
            else _present_cluster(settings, inputs())
        )
        if not groups.group_of:
            raise UsageError(
                f"{history.source}: no node belongs to a node group of the configuration, so it is not known which "
                f"machines could be others: {'; '.join(groups.problems) or 'correct the selectors of nodeGroups'}"
            )
        line.show(0.9, "packing pods")
        report = shape_report(history, catalogue, groups, rules, values.integer("max-shapes"))
    _print(values, report)
    return not isinstance(report.choice, NoChoice)


def _catalogue(path: Path) -> ShapeCatalogue:
    try:
        content = sole_content(path, read_each([path]))
        return read_catalogue(content.text, str(content.path))
    except FilesError as error:
        raise UsageError(f"--shapes: {error}") from error
    except DocumentError as error:
        raise UsageError(str(error.problems[0])) from error


def _past(
    values: FlagValues, configuration: Configuration, settings: ClusterSizeSettings, show: Callable[[float, str], None]
) -> tuple[History, NodeGroups, DrainRules]:
    recording = read_past(values, configuration, settings, show)
    nodes = tuple({one.node.name: one.node for one in recording.nodes}.values())
    state = ClusterState(
        nodes=Observed(nodes, recording.end),
        pods=Observed((), recording.end),
        workloads=Observed((), recording.end),
        storage=None,
    )
    groups = node_groups(settings.node_groups, state, recording.end, (), settings.passing_taints)
    rules = DrainRules(settings.scale_down, (), RemainingDisruptions(()), recording.end, CONTROLLERS)
    return history_of_recording(recording, groups.group_of), groups, rules


def _present_cluster(settings: ClusterSizeSettings, inputs: Inputs) -> tuple[History, NodeGroups, DrainRules]:
    state, now = inputs.cluster, time.time()
    if not isinstance(state.nodes, Observed) or not isinstance(state.pods, Observed):
        raise UsageError("nodes and pods are not known: check --cluster, or the rights to list both")
    groups = node_groups(settings.node_groups, state, now, (), settings.passing_taints)
    workloads = state.workloads.value if isinstance(state.workloads, Observed) else ()
    rules = DrainRules(settings.scale_down, workloads, RemainingDisruptions(()), now, CONTROLLERS)
    history = history_of_now(state.nodes.value, state.pods.value, groups.group_of, now)
    return history, groups, rules


def _print(values: FlagValues, report: ShapeReport) -> None:
    if values.text("output") == "json":
        sys.stdout.write(json_text(shapes_document(report)) + "\n")
        return
    sys.stdout.write(shapes_text(report) + "\n")
