"""Completes workloads from other objects: priorities from PriorityClasses, and templates from ReplicaSets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.facts.workloads import PriorityClassFacts, WorkloadRecord
    from adapter.foundation.cluster.values.workloads import WorkloadFacts

_BUILT_IN: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def completed_workloads(
    records: Iterable[WorkloadRecord], classes: Iterable[PriorityClassFacts]
) -> tuple[tuple[WorkloadFacts, ...], tuple[str, ...]]:
    """Return the workloads in the order of kind, namespace and name, and a sentence for each missing PriorityClass."""
    known = dict(_BUILT_IN)
    default = 0
    for one in classes:
        known[one.name] = one.value
        default = one.value if one.is_default else default
    ordered = sorted(records, key=lambda record: record.key)
    newest = _newest(ordered)
    workloads = tuple(_complete_workload(record, newest.get(record.key, record), known, default) for record in ordered)
    missing = Counter(
        record.priority_class
        for record in ordered
        if record.priority_class and not record.is_priority_stated and record.priority_class not in known
    )
    return workloads, tuple(
        f"{count} workloads name the PriorityClass {name}, which is not known: their pods count with the priority "
        f"{default}"
        for name, count in sorted(missing.items())
    )


def _newest(records: Iterable[WorkloadRecord]) -> Mapping[tuple[str, str, str], WorkloadRecord]:
    """Return the newest ReplicaSet of each Deployment, whose template has the labels of the pods."""
    newest: dict[tuple[str, str, str], WorkloadRecord] = {}
    for record in records:
        owner = record.owner
        if owner is None or owner[0] != "Deployment" or record.workload.template is None:
            continue
        if owner not in newest or newest[owner].revision < record.revision:
            newest[owner] = record
    return newest


def _complete_workload(
    record: WorkloadRecord, source: WorkloadRecord, classes: Mapping[str, int], default: int
) -> WorkloadFacts:
    template = source.workload.template
    if template is None or record.workload.template is None:
        return record.workload
    if source.is_priority_stated:
        return replace(record.workload, template=template)
    priority = classes.get(source.priority_class, default) if source.priority_class else default
    return replace(record.workload, template=replace(template, priority=priority))
