"""Finds the workloads whose pods have values, from the names that controllers give to pods (pure)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.exporters.pod_names import LikelyWorkload, workload_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.commands.init.tried_rule import TriedRule


@dataclass(frozen=True, slots=True)
class ScalableWorkload:
    """A workload, and the metric by which an HPA can scale it."""

    workload: LikelyWorkload
    rule: TriedRule
    pods: int
    average: float
    """Mean of the metric over the pods when the rule was tried."""


def scalable_workloads(rules: Sequence[TriedRule]) -> list[ScalableWorkload]:
    """Return each workload with a metric that follows its load and has values, and the first such metric."""
    chosen: dict[LikelyWorkload, ScalableWorkload] = {}
    for rule in rules:
        if not rule.metric.known.scales:
            continue
        by_workload: defaultdict[LikelyWorkload, list[float]] = defaultdict(list)
        for pod, value in rule.values.items():
            workload = workload_of(pod)
            if workload is not None:
                by_workload[workload].append(value)
        for workload, values in by_workload.items():
            found = ScalableWorkload(workload, rule, len(values), sum(values) / len(values))
            chosen.setdefault(workload, found)
    return sorted(chosen.values(), key=lambda each: (each.workload.namespace, each.workload.name, each.workload.kind))


def file_names(workloads: Iterable[LikelyWorkload]) -> dict[LikelyWorkload, str]:
    """Return a file name for each workload; it includes the namespace if several workloads have the same name."""
    listed = list(workloads)
    names: dict[LikelyWorkload, str] = {}
    for workload in listed:
        namesakes = [other for other in listed if other.name == workload.name]
        name = workload.name if len(namesakes) == 1 else f"{workload.namespace}.{workload.name}"
        if len({(other.namespace, other.name) for other in namesakes}) < len(namesakes):
            name = f"{workload.namespace}.{workload.name}.{workload.kind.lower()}"
        names[workload] = f"hpa-{name}.yaml"
    return names
