"""Turns the inputs of a poll into the situation of a cluster size decision. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.reports.counts import count_of
from recommender.decisions.calculation import InputMissingError
from recommender.decisions.targets.doubted_first_lists import known_now, unless_doubted
from recommender.decisions.texts.times import check_age, oldest_time
from recommender.kinds.cluster_size.expanders.priorities import CONFIG_MAP_KEY, PrioritiesError, parse_priorities
from recommender.kinds.cluster_size.model.size_situation import ClusterSituation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adapter.foundation.cluster.values.state import ClusterState, LeftOut, ObjectKind
    from adapter.foundation.cluster.values.storage import Storage
    from recommender.decisions.inputs import Inputs
    from recommender.kinds.cluster_size.model.groups import NodeGroups
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings


V = TypeVar("V")

CONTROLLERS: Final = frozenset({"DaemonSet", "ReplicaSet", "StatefulSet", "ReplicationController", "Job"})
_BUDGETS: Final = "PodDisruptionBudgets"
_NOT_READ: Final = Unknown("it has not been read")
_SHOWN: Final = 3
"""The number of names in a note."""
_STORAGE_PARTS: Final = {
    "claims": "PersistentVolumeClaims",
    "volumes": "PersistentVolumes",
    "classes": "StorageClasses",
    "csi_nodes": "CSINodes",
}


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """The essential facts, which are known and recent."""

    cluster: ClusterState
    confirmed: float
    """The time of the oldest of these facts, in Unix seconds."""


def known_cluster(cluster: ClusterState, stale_after_seconds: float, now: float) -> KnownCluster:
    """Return the facts if nodes and pods are known and recent enough. Raises InputMissingError.

    All other kinds of objects must also have been listed once: without the node groups, for example, all nodes would
    count as outside groups after a restart, and the time for which they have been unneeded would be lost.
    """
    times = []
    for what, fact in (("nodes", cluster.nodes), ("pods", cluster.pods)):
        if isinstance(fact, Unknown):
            raise InputMissingError(f"{what} are not known: {fact.reason}")
        times.append(fact.time)
    awaited = next((fact for fact in _others(cluster) if isinstance(fact, Unknown) and fact.is_awaited), None)
    if awaited is not None:
        raise InputMissingError(awaited.reason)
    # Known facts must also be recent; unknown ones only keep nodes from being removed, and are named.
    times += [
        fact.time
        for fact in (cluster.workloads, cluster.disruption_budgets, cluster.namespace_labels)
        if isinstance(fact, Observed)
    ]
    confirmed = oldest_time(times, now)
    problem = check_age("the facts of the cluster are", confirmed, now, stale_after_seconds)
    if problem:
        raise InputMissingError(problem)
    return KnownCluster(_without_stale(cluster, stale_after_seconds, now), min(confirmed, now))


def _without_stale(cluster: ClusterState, stale_after_seconds: float, now: float) -> ClusterState:
    """Return the facts; outdated storage and whole objects become unknown, and only decisions that need them stop."""
    storage = cluster.storage
    if storage is not None:
        parts = {part: _recent(getattr(storage, part), stale_after_seconds, now) for part in _STORAGE_PARTS}
        storage = replace(storage, **parts)
    objects = {kind: _recent(fact, stale_after_seconds, now) for kind, fact in cluster.objects.items()}
    return replace(cluster, storage=storage, objects=objects)


def _recent(fact: Observed[V] | Unknown, stale_after_seconds: float, now: float) -> Observed[V] | Unknown:
    if isinstance(fact, Unknown):
        return fact
    problem = check_age("what is known is", fact.time, now, stale_after_seconds)
    return Unknown(problem) if problem else fact


def _others(cluster: ClusterState) -> Iterator[Observed[Any] | Unknown]:
    """Yield the facts about objects that are neither nodes nor pods."""
    yield from (cluster.workloads, cluster.disruption_budgets, cluster.namespace_labels)
    if cluster.storage is not None:
        yield from (getattr(cluster.storage, part) for part in _STORAGE_PARTS)
    yield from cluster.objects.values()


def situation_of(
    known: KnownCluster,
    groups: NodeGroups,
    settings: ClusterSizeSettings,
    inputs: Inputs,
    memory: ClusterSizeMemory,
    now: float,
) -> ClusterSituation:
    """Return the situation of a program that waits and writes nothing; `groups` are found beforehand."""
    cluster = known.cluster
    assert isinstance(cluster.nodes, Observed), "known facts"
    assert isinstance(cluster.pods, Observed), "known facts"
    priorities, problem = _priorities(settings, inputs)
    budgets = cluster.disruption_budgets
    return ClusterSituation(
        now=now,
        nodes=cluster.nodes.value,
        pods=tuple(pod for pod in cluster.pods.value if not pod.has_ended),
        groups=groups,
        workloads=cluster.workloads.value if isinstance(cluster.workloads, Observed) else (),
        assumed_controllers=_assumed_controllers(cluster),
        budgets=budgets.value if isinstance(budgets, Observed) else None,
        namespace_labels=cluster.namespace_labels.value if isinstance(cluster.namespace_labels, Observed) else None,
        storage=cluster.storage,
        priorities=priorities,
        priorities_problem=problem,
        memory=memory,
        future_pods=inputs.assumed_pods,
        assumed_pods=frozenset((pod.namespace, pod.name) for pod in inputs.assumed_pods),
        displaced_pods=inputs.displaced_pods,
        confirmed=known.confirmed,
    )


def _assumed_controllers(cluster: ClusterState) -> frozenset[str]:
    """Return the kinds of controllers without any known object, as after `kubectl get nodes,pods`.

    If the controllers of such pods counted as deleted, no answer could move a pod. The message names the kinds.
    """
    if isinstance(cluster.workloads, Unknown):
        return frozenset()
    return CONTROLLERS - {workload.kind for workload in cluster.workloads.value}


def _priorities(settings: ClusterSizeSettings, inputs: Inputs) -> tuple[Mapping[int, tuple[str, ...]] | None, str]:
    """Return the priorities for the priority expander, or None to filter nothing, and why they cannot be used."""
    if settings.priorities is not None or settings.priorities_config_map is None:
        return settings.priorities, ""
    namespace, name = settings.priorities_config_map
    place = f"ConfigMap {namespace}/{name}"
    found = inputs.config_maps.get(settings.priorities_config_map, _NOT_READ)
    if isinstance(found, Unknown):
        return None, f"the {place} is not known: {found.reason}"
    if found.value is None:
        return None, f"there is no {place}: write it, or `priorities`"
    text = found.value.data.get(CONFIG_MAP_KEY)
    if text is None:
        return None, f"the {place} has no key {CONFIG_MAP_KEY}"
    try:
        return parse_priorities(text, place), ""
    except PrioritiesError as error:
        return None, str(error)


def notes_about(cluster: ClusterState) -> tuple[str, ...]:
    """Return one sentence for each fact that is unknown or left out, and so may make the answer too careful."""
    problems = (*cluster.problems, *cluster.placement_problems)
    unnamed = (problem for problem in problems if not _is_named(problem, cluster.left_out))
    return (*unnamed, *_left_out(cluster.left_out), *_unknown(cluster))


def _is_named(problem: str, left_out: Iterable[LeftOut]) -> bool:
    """Return whether the note on left-out objects already covers the object that a problem is about."""
    return any(one.reason in problem for one in left_out)


def _unknown(cluster: ClusterState) -> Iterator[str]:
    if isinstance(cluster.workloads, Unknown):
        yield f"workloads are not known, so nodes with pods of workloads are kept: {cluster.workloads.reason}"
    if isinstance(cluster.disruption_budgets, Unknown):
        yield f"PodDisruptionBudgets are not known, so no pod is moved: {cluster.disruption_budgets.reason}"
    if isinstance(cluster.namespace_labels, Unknown) and _select_namespaces(cluster):
        yield (
            "labels of namespaces are not known, so pods whose affinity selects namespaces by labels are placed only "
            f"where that cannot matter: {cluster.namespace_labels.reason}"
        )
    if cluster.storage is not None:
        yield from _unknown_storage(cluster.storage)


def _select_namespaces(cluster: ClusterState) -> bool:
    """Return whether a pod has a term that selects namespaces by labels. Pods of one controller share their terms."""
    pods = cluster.pods.value if isinstance(cluster.pods, Observed) else ()
    found = {id(pod.facts.scheduling): pod.facts.scheduling for pod in pods if pod.facts is not None}
    return any(
        term.namespace_selector is not None and term.namespace_selector.requirements
        for scheduling in found.values()
        for term in (*scheduling.affinity, *scheduling.anti_affinity)
    )


def _unknown_storage(storage: Storage) -> Iterator[str]:
    for name, kind in _STORAGE_PARTS.items():
        part = getattr(storage, name)
        if isinstance(part, Unknown):
            yield f"{kind} are not known, so no place is found for pods with claims: {part.reason}"


def _left_out(found: Iterable[LeftOut]) -> Iterator[str]:
    """Yield for each kind how many objects are left out, with the first ones and their reasons."""
    counts = Counter(one.kind for one in found)
    for kind, count in sorted(counts.items()):
        examples = [one.reason for one in found if one.kind == kind][:_SHOWN]
        more = f"; and {count - len(examples)} more" if count > len(examples) else ""
        yield f"{count_of(count, kind)} left out: {'; '.join(examples)}{more}"


def believed_cluster(cluster: ClusterState, known: Mapping[str, int]) -> ClusterState:
    """Return the facts; a kind is unknown if its first list is empty although the memory knows such objects.

    Without budgets, nodes that they protect would be removed, and without node groups, the time for which nodes have
    been unneeded would be forgotten.
    """
    return replace(
        cluster,
        nodes=unless_doubted("nodes", cluster.nodes, known),
        pods=unless_doubted("pods", cluster.pods, known),
        disruption_budgets=unless_doubted(_BUDGETS, cluster.disruption_budgets, known),
        objects={kind: unless_doubted(_kind_name(kind), fact, known) for kind, fact in cluster.objects.items()},
    )


def known_of(cluster: ClusterState, known: Mapping[str, int]) -> Mapping[str, int]:
    """Return how many objects of each kind are known, for the memory."""
    for what, fact in _facts(cluster):
        known = known_now(what, fact, len(fact.value) if isinstance(fact, Observed) else 0, known)
    return known


def _facts(cluster: ClusterState) -> Iterator[tuple[str, Observed[Any] | Unknown]]:
    yield from (("nodes", cluster.nodes), ("pods", cluster.pods), (_BUDGETS, cluster.disruption_budgets))
    yield from ((_kind_name(kind), fact) for kind, fact in cluster.objects.items())


def _kind_name(kind: ObjectKind) -> str:
    where = "/".join(filter(None, (kind.namespace, kind.name)))
    name = f"{kind.resource}.{kind.group}" if kind.group else kind.resource
    return f"{name} of {where}" if where else name
