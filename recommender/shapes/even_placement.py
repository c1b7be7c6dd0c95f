"""Places pods with all machines present, as topology spread constraints demand. Pure.

If machines are filled one after another, a pod is judged among those that exist then. Among all of them, the scheduler
may refuse its place: a machine that was added later has none of the pods that must be spread.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.estimator.node_turns import NodeTurns
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.template_nodes import add_new_node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class EvenPlacement:
    """The nodes of pods that were placed among all machines, and the pods that found no place."""

    counts: Mapping[str, int]
    """Number of machines with pods by group."""
    nodes: Mapping[tuple[str, str], str]
    """The node of each pod, by namespace and name."""
    left: Mapping[PodShape, tuple[ClusterPod, ...]]


def placed_among_all(
    snapshot: Snapshot,
    pods: Mapping[PodShape, Sequence[ClusterPod]],
    groups: Sequence[NodeGroup],
    counts: Mapping[str, int],
) -> EvenPlacement:
    """Place pods on this many machines of each group, all of which are there from the start.

    The pods that must be spread come first, since they have the fewest places. The snapshot, which must have no nodes,
    is unchanged afterwards.
    """
    mark = snapshot.checkpoint()
    machines: list[tuple[str, NodeInfo]] = []
    for group in groups:
        assert group.template is not None, "candidates are made with one"
        names = (f"{group.name}-{number}" for number in range(counts.get(group.name, 0)))
        machines += [(group.name, add_new_node(snapshot, group.template, name)) for name in names]
    infos = [info for _, info in machines]
    own = {id(info): len(info.pods) for info in infos}
    waiting = {shape: list(pods[shape]) for shape in sorted(pods, key=lambda one: not one.scheduling.spread)}
    turns = {shape: NodeTurns(snapshot, PodFilter(snapshot, shape), shape) for shape in waiting}
    for each in turns.values():
        each.add(infos)
    # A pod may fit only beside pods of another shape, so all shapes have their turn until nothing changes.
    is_placed = True
    while is_placed:
        is_placed = False
        for shape, those in waiting.items():
            count = turns[shape].place(those)
            waiting[shape] = those[count:]
            is_placed |= count > 0
    # Without empty machines, there may be fewer domains than a constraint demands.
    needs_all = any(one.min_domains > 1 for shape in pods for one in shape.scheduling.spread)
    found: Counter[str] = Counter()
    nodes: dict[tuple[str, str], str] = {}
    for name, info in machines:
        if needs_all or len(info.pods) > own[id(info)]:
            nodes |= dict.fromkeys(info.pods, f"{name}-{found[name]}")
            found[name] += 1
    snapshot.revert(mark)
    return EvenPlacement(found, nodes, {shape: tuple(those) for shape, those in waiting.items() if those})


def without_spread(pod: ClusterPod) -> ClusterPod:
    """Return a pod that may be anywhere as far as its topology spread constraints are concerned."""
    if pod.facts is None or not pod.facts.scheduling.spread:
        return pod
    return replace(pod, facts=replace(pod.facts, scheduling=replace(pod.facts.scheduling, spread=())))
