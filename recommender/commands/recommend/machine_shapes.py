"""`recommend --shapes`: the machines that node groups should be of, by a history or the present cluster."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

import msgspec

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.documents.tree import DocumentError
from adapter.foundation.files.file_contents import FilesError, read_each
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import INTEGER, PATH, TEXT, Flag
from recommender.backtest.progress import ProgressLine
from recommender.commands.backtest.flags import DEFAULT_LAST_SECONDS, SPAN
from recommender.commands.replay.chosen_settings import chosen_settings
from recommender.commands.replay.past import read_past
from recommender.kinds.cluster_size.node_groups.discover import node_groups
from recommender.kinds.cluster_size.scale_down.disruptions import RemainingDisruptions
from recommender.kinds.cluster_size.scale_down.drainability import DrainRules
from recommender.replay.situations import CONTROLLERS
from recommender.shapes.catalogue import read_catalogue
from recommender.shapes.choice import NoChoice
from recommender.shapes.document import shapes_document, shapes_text
from recommender.shapes.peaks import history_of_now, history_of_recording
from recommender.shapes.report import shape_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.inputs import Inputs
    from recommender.kinds.cluster_size.model.groups import NodeGroups
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.shapes.catalogue import ShapeCatalogue
    from recommender.shapes.peaks import History
    from recommender.shapes.report import ShapeReport

_GROUP: Final = "Machine shapes"
_MOST_SHAPES: Final = 8
_OWN: Final = ("recording", "last", "end", "step")
_PAST: Final = ("prometheus-url", *_OWN)
_BESIDES: Final = ("max-shapes", *_OWN)
_ELSEWHERE: Final = ("assume", "without-node", "add-pods")

SHAPE_FLAGS: Final = (
    Flag(
        name="shapes",
        kind=PATH,
        help="Instead of sizes, name the cheapest machines for the peak hours of a history: a catalogue of shapes.",
        group=_GROUP,
    ),
    Flag(name="max-shapes", kind=INTEGER, default=3, help="Most shapes to use.", group=_GROUP),
    Flag(
        name="recording",
        kind=PATH,
        help="The history is what `run` has recorded: a file of a recording, or the folder with all.",
        group=_GROUP,
    ),
    Flag(
        name="last",
        kind=SPAN,
        default=DEFAULT_LAST_SECONDS,
        help="How long the history is, up to --end. Of a recording, all of it without this flag.",
        group=_GROUP,
    ),
    Flag(name="end", kind=TEXT, help="End of the history: a time, a date, or -1d.", group=_GROUP),
    Flag(name="step", kind=SPAN, default=300.0, help="How finely Prometheus is asked.", group=_GROUP),
)


def check_shape_flags(values: FlagValues) -> None:
    """Refuse flags that do not go together. Raises UsageError."""
    if values.path("shapes") is None:
        lonely = next((name for name in _BESIDES if name in values.given), None)
        if lonely is not None:
            raise UsageError(f"--{lonely} has no effect without --shapes: name a catalogue of machine shapes")
        return
    other = next((name for name in _ELSEWHERE if name in values.given), None)
    if other is not None:
        raise UsageError(f"--{other} cannot be combined with --shapes, which packs pods that there have been")
    if not 1 <= values.integer("max-shapes") <= _MOST_SHAPES:
        raise UsageError(f"--max-shapes of {values.integer('max-shapes')}: write 1 to {_MOST_SHAPES}")
    if _has_past(values) and values.path("cluster") is not None:
        raise UsageError("--cluster cannot be combined with a history: machines are chosen for one of them")


def recommend_shapes(
    path: Path, values: FlagValues, configuration: Configuration, inputs: Callable[[], Inputs]
) -> bool:
    """Print the machines, and return whether there are any. `inputs` reads the present cluster.

    Raises UsageError, and what reading a history or a cluster raises.
    """
    catalogue = _catalogue(path)
    names = values.texts("recommendation")
    settings = chosen_settings(names[0] if names else "", configuration)
    with closing(ProgressLine()) as line:
        history, groups, rules = (
            _past(values, configuration, settings, line.show) if _has_past(values) else _present(settings, inputs())
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


def _has_past(values: FlagValues) -> bool:
    return any(name in values.given for name in _PAST)


def _catalogue(path: Path) -> ShapeCatalogue:
    try:
        (content,) = read_each([path])
        if content.unread is not None:
            raise content.unread
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


def _present(settings: ClusterSizeSettings, inputs: Inputs) -> tuple[History, NodeGroups, DrainRules]:
    state, now = inputs.cluster, time.time()
    if not isinstance(state.nodes, Observed) or not isinstance(state.pods, Observed):
        raise UsageError("nodes and pods are not known: check --cluster, or the rights to list both")
    groups = node_groups(settings.node_groups, state, now, (), settings.passing_taints)
    workloads = state.workloads.value if isinstance(state.workloads, Observed) else ()
    rules = DrainRules(settings.scale_down, workloads, RemainingDisruptions(()), now, CONTROLLERS)
    history = history_of_now("the present cluster", state.nodes.value, state.pods.value, groups.group_of, now)
    return history, groups, rules


def _print(values: FlagValues, report: ShapeReport) -> None:
    if values.text("output") == "json":
        document = msgspec.json.encode(shapes_document(report))
        sys.stdout.write(msgspec.json.format(document, indent=2).decode() + "\n")
        return
    sys.stdout.write(shapes_text(report) + "\n")
