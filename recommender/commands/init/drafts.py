"""Drafts of recommendations, with deduced values and their reasons, and the facts that only a person knows (pure)."""

from __future__ import annotations

import json
import math
import re
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.durations import format_duration
from adapter.foundation.objects.quantities import quantity_of
from adapter.foundation.reports.counts import agreeing, count_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from adapter.foundation.exporters.pod_names import LikelyWorkload
    from recommender.commands.init.addons import SizedAddon
    from recommender.commands.init.workload_loads import CarriedLoad, WorkloadLoad

_LONGEST_NAME: Final = 63
_LONGEST_STARTUP_SECONDS: Final = 3600.0
"""A pod that became ready later than this had probably been ready before, and lost its readiness for a while."""

_PLAIN: Final = re.compile(r"[a-z][a-z0-9-]*")
"""Names that need no quotes, unless they are words that YAML reads as something other than text."""
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


@dataclass(frozen=True, slots=True)
class Deduced:
    """A value of the configuration, and the reason for it."""

    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class MissingFact:
    """A value that only a person knows."""

    key: str
    question: str


@dataclass(frozen=True, slots=True)
class Draft:
    """The draft of an entry of `recommendations`."""

    name: str
    notes: tuple[str, ...]
    """Notes on the entry, as sentences."""
    lines: tuple[str, ...]
    """The lines of the entry, without the indentation of the list."""
    missing: tuple[MissingFact, ...] = ()
    """The values that are missing; if there are any, the entry is written as a comment."""


def load_per_replica(carried: CarriedLoad | None) -> Deduced | None:
    """Return the load that a pod carries as the value of `loadPerReplica`; None if it is unknown."""
    return None if carried is None else Deduced(quantity_of(carried.load), carried.reason)


def horizon(startups: Sequence[float]) -> Deduced | None:
    """Return the median start-up time of pods as the value of `horizon`; None if no start-up time is known."""
    usable = [seconds for seconds in startups if 0 <= seconds <= _LONGEST_STARTUP_SECONDS]
    if not usable:
        return None
    seconds = max(1, math.ceil(statistics.median(usable)))
    pods = "the only pod that is ready" if len(usable) == 1 else f"half of the {len(usable)} pods that are ready"
    return Deduced(format_duration(seconds), f"{pods} took that long from creation to readiness, or less")


def predictive_draft(load: WorkloadLoad, name: str, per_replica: Deduced | None, startup: Deduced | None) -> Draft:
    """Return the entry for a workload whose load is known."""
    workload, known = load.workload, load.known
    where = f"{workload.namespace}/{workload.name}"
    notes = [
        f"{workload.kind} {where}: {known.series} ({known.exporter}) is the number of {known.meaning}."
        if known.type.value == "gauge"
        else f"{workload.kind} {where}: the rate of {known.series} ({known.exporter}): {known.meaning}."
    ]
    missing: list[MissingFact] = []
    if per_replica is None:
        missing.append(MissingFact("loadPerReplica", f"How much of this load can one pod of {where} serve?"))
    else:
        notes.append(
            f"loadPerReplica is {per_replica.reason}. Replace it with what a pod can handle once you have tested that."
        )
    if startup is None:
        missing.append(MissingFact("horizon", f"How long does a pod of {where} take until it serves, such as 90s?"))
    else:
        notes.append(f"horizon: {startup.reason}.")
    lines = (
        f"- name: {_name_text(name)}",
        "  predictive:",
        f"    load: {json.dumps(load.query)}",
        f"    loadPerReplica: {'' if per_replica is None else per_replica.value}".rstrip(),
        f"    horizon: {'' if startup is None else startup.value}".rstrip(),
        _target(workload),
        "  outputs: [metric]",
    )
    return Draft(name, tuple(notes), lines, tuple(missing))


def addon_draft(found: SizedAddon, name: str) -> Draft:
    """Return the entry for an add-on, which keeps the add-on from becoming smaller than it is now."""
    workload = found.workload
    size = count_of(found.replicas, "replica")
    notes = (
        f"{workload.kind} {workload.namespace}/{workload.name} has {size} now, which is the least size here.",
        f"The ratios are from {found.addon.source}.",
    )
    most = found.addon.most
    limits = f"min: {found.replicas}" + (f", max: {most}" if most is not None and most >= found.replicas else "")
    lines = (
        f"- name: {_name_text(name)}",
        "  proportional:",
        f"    linear: {{{found.addon.ratios}, {limits}}}",
        _target(workload),
        "  outputs: [metric]",
    )
    return Draft(name, notes, lines)


def nodes_draft(label: str, labelled: int, nodes: int, name: str) -> Draft:
    """Return the entry for the size of the cluster, which is reported and never written."""
    some = f"{labelled} of {count_of(nodes, 'node')}"
    notes = (
        f"Node groups by the label {label}, which {some} {agreeing(labelled, 'has', 'have')}.",
        "It only reports: the autoscaler of the cloud stays in charge.",
        "Write min and max of your groups, which default to 0 and 1000.",
    )
    lines = (
        f"- name: {_name_text(name)}",
        "  clusterSize:",
        f"    nodeGroups: {{byLabel: {{key: {json.dumps(label)}}}}}",
        "  outputs: [metric]",
    )
    return Draft(name, notes, lines)


def entry_name(workload: LikelyWorkload, taken: Collection[str], names: Mapping[str, int]) -> str:
    """Return a unique name for an entry: the workload's name, with its namespace if several workloads share the name.

    `taken` are the names of other entries; `names` counts the workloads by name.
    """
    plain = workload.name.replace(".", "-")
    wanted = plain if names.get(workload.name, 0) <= 1 else f"{workload.namespace}-{plain}"
    for number in range(1, len(taken) + 2):
        suffix = "" if number == 1 else f"-{number}"
        name = f"{wanted[: _LONGEST_NAME - len(suffix)].rstrip('-')}{suffix}"
        if name not in taken:
            return name
    raise AssertionError(wanted)


def _name_text(name: str) -> str:
    """Return the name of an entry as a text of YAML, which `null`, `1e3` and `2026-01-01` are not without quotes."""
    return name if _PLAIN.fullmatch(name) and name not in _WORDS else json.dumps(name)


def _target(workload: LikelyWorkload) -> str:
    name, namespace = json.dumps(workload.name), json.dumps(workload.namespace)
    return f"  targets: [{{apiVersion: apps/v1, kind: {workload.kind}, namespace: {namespace}, name: {name}}}]"
