"""Adds the facts of scheduling to the state of a cluster, and completes workloads from other objects."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from adapter.foundation.cluster.facts.workloads import NamespaceFacts, PriorityClassFacts, WorkloadRecord
from adapter.foundation.cluster.scheduling.kinds import WORKLOADS
from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod, ClusterState, LeftOut, Observed, Unknown
from adapter.foundation.cluster.values.storage import CsiNodeFacts, Storage, StorageClassFacts, Volume, VolumeClaim
from adapter.foundation.cluster.values.workloads import DisruptionBudget, WorkloadFacts
from adapter.foundation.objects.pod_requests import units_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from adapter.foundation.cluster.scheduling.kinds import SchedulingValue


K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")

Found: TypeAlias = "Mapping[str, Observed[tuple[SchedulingValue, ...]] | Unknown]"
"""The values of each kind, by the name of the kind."""

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
        f"workloads name the PriorityClass {name}, which is not known ({count}): their pods count with the priority "
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


def with_scheduling(state: ClusterState, found: Found, left_out: Iterable[LeftOut]) -> ClusterState:
    """Return the state with the facts of scheduling; `left_out` are further objects that cannot be used."""
    records = _together(found, WORKLOADS, WorkloadRecord)
    classes = _together(found, ("PriorityClass",), PriorityClassFacts)
    budgets = _together(found, ("PodDisruptionBudget",), DisruptionBudget)
    namespaces = _together(found, ("Namespace",), NamespaceFacts)
    problems: tuple[str, ...] = ()
    workloads: Observed[tuple[WorkloadFacts, ...]] | Unknown = Unknown("")
    cycles: Mapping[Key, str] = {}
    if isinstance(records, Unknown):
        workloads = records
    else:
        completed, problems = completed_workloads(records.value, classes.value if isinstance(classes, Observed) else ())
        workloads = Observed(completed, records.time)
        cycles = owner_cycles(dict(_owners(records.value, state)))
    named = [*left_out, *_left_out_workloads(workloads), *_left_out_budgets(budgets)]
    named += [LeftOut(*key, reason) for key, reason in cycles.items()]
    pods = state.pods
    if isinstance(pods, Observed):
        kept, refused = _usable_pods(pods.value, state.nodes, cycles)
        pods = replace(pods, value=kept)
        named += refused
    return replace(
        state,
        pods=pods,
        workloads=workloads,
        disruption_budgets=budgets,
        namespace_labels=_by(namespaces, lambda one: one.name, lambda one: one.labels),
        storage=_storage(found),
        left_out=tuple(sorted(named, key=lambda one: (one.kind, one.namespace, one.name, one.reason))),
        placement_problems=(*state.placement_problems, *problems),
    )


def _owners(records: Iterable[WorkloadRecord], state: ClusterState) -> Iterator[tuple[Key, Key]]:
    for record in records:
        if record.owner is not None:
            yield record.key, record.owner
    for pod in state.pods.value if isinstance(state.pods, Observed) else ():
        if pod.controller is not None and pod.controller.kind == "Pod":
            yield ("Pod", pod.namespace, pod.name), ("Pod", pod.namespace, pod.controller.name)


def _storage(found: Found) -> Storage:
    claims = _together(found, ("PersistentVolumeClaim",), VolumeClaim)
    volumes = _together(found, ("PersistentVolume",), Volume)
    classes = _together(found, ("StorageClass",), StorageClassFacts)
    csi_nodes = _together(found, ("CSINode",), CsiNodeFacts)
    return Storage(
        claims=_by(claims, lambda one: (one.namespace, one.name), lambda one: one),
        volumes=_by(volumes, lambda one: one.name, lambda one: one),
        classes=_by(classes, lambda one: one.name, lambda one: one),
        csi_nodes=_by(csi_nodes, lambda one: one.name, lambda one: one),
    )


def _together(found: Found, kinds: Iterable[str], form: type[V]) -> Observed[tuple[V, ...]] | Unknown:
    """Return the values of several kinds with the oldest of their times; unknown if the values of any kind are."""
    values: list[V] = []
    times = []
    began_empty = False
    for kind in kinds:
        fact = found[kind]
        if isinstance(fact, Unknown):
            return fact
        values += (value for value in fact.value if isinstance(value, form))
        times.append(fact.time)
        began_empty = began_empty or fact.began_empty
    return Observed(tuple(values), min(times), began_empty)


def _by(
    fact: Observed[tuple[V, ...]] | Unknown, key: Callable[[V], K], value: Callable[[V], T]
) -> Observed[Mapping[K, T]] | Unknown:
    if isinstance(fact, Unknown):
        return fact
    return Observed({key(one): value(one) for one in fact.value}, fact.time)


def _left_out_workloads(fact: Observed[tuple[WorkloadFacts, ...]] | Unknown) -> Iterator[LeftOut]:
    for one in fact.value if isinstance(fact, Observed) else ():
        if one.problem:
            yield LeftOut(one.kind, one.namespace, one.name, one.problem)


def _left_out_budgets(fact: Observed[tuple[DisruptionBudget, ...]] | Unknown) -> Iterator[LeftOut]:
    for one in fact.value if isinstance(fact, Observed) else ():
        if one.problem:
            yield LeftOut("PodDisruptionBudget", one.namespace, one.name, one.problem)


def _usable_pods(
    pods: tuple[ClusterPod, ...],
    nodes: Observed[tuple[ClusterNode, ...]] | Unknown,
    cycles: Mapping[Key, str],
) -> tuple[tuple[ClusterPod, ...], list[LeftOut]]:
    """Return the pods that are unbound or whose nodes exist, and an entry for each pod that cannot be used."""
    known = {node.name: node for node in nodes.value} if isinstance(nodes, Observed) else None
    kept: list[ClusterPod] = []
    refused: list[LeftOut] = []
    for pod in pods:
        if pod.node and known is not None and pod.node not in known:
            reason = (
                f"Pod {pod.namespace}/{pod.name} is bound to the node {pod.node}, which is not among the usable nodes: "
                "it is not counted"
            )
            refused.append(LeftOut("Pod", pod.namespace, pod.name, reason))
            continue
        facts = pod.facts
        if facts is not None and facts.problem:
            refused.append(LeftOut("Pod", pod.namespace, pod.name, facts.problem))
            kept.append(
                pod if facts.are_requests_known or known is None else _with_requests_of_node(pod, known[pod.node])
            )
        elif cycles and facts is not None and (reason := _cycle_of(pod, cycles)):
            kept.append(replace(pod, facts=replace(facts, owner_problem=reason)))
        else:
            kept.append(pod)
    return tuple(kept), refused


def _with_requests_of_node(pod: ClusterPod, node: ClusterNode) -> ClusterPod:
    """Return the pod with everything that its node offers as its requests, because its own are not known."""
    offered = {resource: units_of(resource, amount) for resource, amount in node.allocatable.items()}
    return replace(pod, resources=replace(pod.resources, requests=offered, non_zero_requests=offered))


def _cycle_of(pod: ClusterPod, cycles: Mapping[Key, str]) -> str:
    owner = pod.controller
    return cycles.get((owner.kind, pod.namespace, owner.name), "") if owner else ""


Key: TypeAlias = "tuple[str, str, str]"
"""Kind, namespace and name."""


def owner_cycles(owners: Mapping[Key, Key]) -> dict[Key, str]:
    """Return the objects whose chain of owners leads back to themselves, each with the reason.

    `owners` maps each object that has a controller to that controller, both as kind, namespace and name.
    """
    cycles: dict[Key, str] = {}
    checked: set[Key] = set()
    for start in owners:
        path: dict[Key, int] = {}
        at: Key | None = start
        while at is not None and at not in checked and at not in path:
            path[at] = len(path)
            at = owners.get(at)
        if at is not None and at in path:
            circle = list(path)[path[at] :]
            for key in circle:
                cycles[key] = _reason(key, circle)
        checked.update(path)
    return cycles


def _reason(key: Key, circle: list[Key]) -> str:
    kind, namespace, name = key
    at = circle.index(key)
    through = " -> ".join(f"{kind} {name}" for kind, _, name in (*circle[at:], *circle[:at], key))
    return f"{kind} {namespace}/{name} is its own owner ({through}): remove one of the owner references"
