"""Collects where pods without a node have found a place, once all of them have been considered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.model.pod_places import PlaceKind, PodOrigin, PodPlace, pod_name

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.predicates.node_info import PodKey
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot
    from recommender.kinds.cluster_size.scale_up.scale_up_state import SizingState


def found_places(
    pods: Iterable[ClusterPod],
    drained: Iterable[ClusterPod],
    situation: ClusterSituation,
    snapshot: Snapshot,
    state: SizingState,
) -> Iterator[PodPlace]:
    """Yield the place of each pod that has one.

    `drained` are bound pods of nodes that are being deleted, whose copies without a node are among `pods`.
    """
    real = {node.name for node in situation.nodes}
    group_of = {**situation.groups.group_of, **state.requested_nodes, **state.new_nodes}
    sources = {(pod.namespace, pod.name): pod.node for pod in drained} | dict(situation.displaced_pods)
    future = {(pod.namespace, pod.name) for pod in situation.future_pods}
    for pod in pods:
        info = snapshot.node_of(pod)
        if info is None:
            continue
        key = (pod.namespace, pod.name)
        name = info.node.name
        is_expected = key in future and key not in situation.assumed_pods
        yield PodPlace(
            pod=pod_name(pod),
            kind=_kind(pod, info, state.new_nodes),
            node=name if name in real else "",
            group=group_of.get(name, ""),
            origin=PodOrigin.EXPECTED if is_expected else _origin(key, sources, situation),
            source=sources.get(key, ""),
        )


def _kind(pod: ClusterPod, info: NodeInfo, new: Container[str]) -> PlaceKind:
    if info.node.name in new:
        return PlaceKind.NEW
    if info.is_added:
        return PlaceKind.UPCOMING
    nominated = "" if pod.facts is None else pod.facts.nominated_node
    return PlaceKind.NOMINATED if nominated == info.node.name else PlaceKind.EXISTING


def _origin(key: PodKey, sources: Mapping[PodKey, str], situation: ClusterSituation) -> PodOrigin:
    if key in sources:
        return PodOrigin.MOVED
    return PodOrigin.ASSUMED if key in situation.assumed_pods else PodOrigin.PENDING
