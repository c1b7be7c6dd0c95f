"""The flags of what-if questions, and the inputs as they would be under the assumptions."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.files.reading import read_contents, state_of
from adapter.foundation.cluster.values.state import ClusterNeeds, ClusterPod, Observed
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import PATH, TEXT, Flag, FlagValues, Repeat, in_group
from recommender.kinds.cluster_size.model.size_settings import cluster_size_settings
from recommender.kinds.cluster_size.what_if.model import WhatIf, WhatIfError, parse_assumption

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.cluster.values.workloads import WorkloadFacts
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.inputs import Inputs

_GROUP: Final = "What if"
_KIND: Final = "clusterSize"
_ADDED: Final = ClusterNeeds(pods=True, scheduling=True)

WHAT_IF_FLAGS: Final = in_group(
    _GROUP,
    Flag(
        "assume",
        TEXT,
        "NAMESPACE/NAME:REPLICAS, such as shop/web:40: the workload has that number of pods. Write KIND/ in "
        "front if two workloads have this name. May be repeated.",
        repeat=Repeat.EACH,
    ),
    Flag(
        "without-node",
        TEXT,
        "The node is removed, and its pods need another node. May be repeated.",
        repeat=Repeat.EACH,
    ),
    Flag(
        "add-pods",
        PATH,
        "Additional pods, or workloads with all of their pods: a file, or a folder of *.json and *.yaml.",
    ),
)


def what_if_of(values: FlagValues, configuration: Configuration) -> WhatIf:
    """Return the questions. Raises UsageError, and ClusterFilesError for the file of `--add-pods`."""
    path = values.path("add-pods")
    pods, workloads = _read_added(path) if path is not None else ((), ())
    try:
        assumptions = tuple(map(parse_assumption, values.texts("assume")))
    except WhatIfError as error:
        raise UsageError(f"--assume: {error}") from error
    question = WhatIf(assumptions, values.texts("without-node"), pods, workloads)
    if question.asks and not cluster_size_settings(configuration.recommendations):
        needed = f"--assume, --without-node and --add-pods need a recommendation with {_KIND}"
        raise UsageError(f"{needed}{_refusal(configuration) or ': add one to the file, or leave them out'}")
    return question


def _refusal(configuration: Configuration) -> str:
    """Return why the entry of that kind cannot be used; empty if there is none."""
    problems = (each.problems[0] for each in configuration.refused if each.type == _KIND)
    return next((f", and that of the file cannot be used: {problem}" for problem in problems), "")


def with_assumptions(configuration: Configuration, inputs: Inputs, question: WhatIf) -> tuple[Configuration, Inputs]:
    """Return configuration and inputs with the assumed changes; a note in each record states the assumptions.

    Raises UsageError.
    """
    if not question.asks:
        return configuration, inputs
    from recommender.kinds.cluster_size.what_if.apply import cluster_under_assumptions  # noqa: PLC0415 - it loads the scheduler's filters

    try:
        found = cluster_under_assumptions(inputs.cluster, question)
    except WhatIfError as error:
        raise UsageError(str(error)) from error
    note = f"what if: {', '.join(found.notes)}" if found.notes else ""
    recommendations = tuple(
        replace(each, policy=replace(each.policy, note="; ".join(filter(None, (each.policy.note, note)))))
        for each in configuration.recommendations
    )
    return (
        replace(configuration, recommendations=recommendations),
        replace(
            inputs,
            cluster=found.cluster,
            assumed_pods=found.pods,
            displaced_pods=found.displaced,
            cluster_with_removed_nodes=found.with_removed_nodes,
        ),
    )


def _read_added(path: Path) -> tuple[tuple[ClusterPod, ...], tuple[WorkloadFacts, ...]]:
    """Return the pods and workloads in a file; a faulty object is an error, since the user asked for it."""
    contents = read_contents(path, needs=_ADDED)
    state = state_of(contents, _ADDED, time.time(), path)
    pods = state.pods.value if isinstance(state.pods, Observed) else ()
    workloads = state.workloads.value if isinstance(state.workloads, Observed) else ()
    if state.left_out:
        raise UsageError(f"--add-pods: {path}: {state.left_out[0].reason}")
    if not pods and not workloads:
        raise UsageError(f"--add-pods: {path} contains no pods and no workloads: write Pods or Deployments")
    return pods, workloads
