"""A replay decides as `run` does: the small situation that it asks about has the answer of the whole cluster."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.made_past import START, PastPlan, made_past
from recommender.kinds.cluster_size.calculate import decide_size
from recommender.kinds.cluster_size.model.groups import NodeGroups
from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources
from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
from recommender.replay.decisions import growth_of, removals_of
from recommender.replay.fleet import NodeFleet
from recommender.replay.scene import scene_of
from recommender.replay.situations import CONTROLLERS, Situations
from tests.recommender.replay.groups import STATIC_GROUPS

if TYPE_CHECKING:
    from recommender.replay.scene import Scene

NOW = START + 3600.0
SCENE = scene_of(
    made_past(PastPlan(days=0.2, nodes=12, seed=3)), ClusterSizeSettings(NodeGroupSources(static=STATIC_GROUPS))
)
KINDS = [number for number, is_replayed in enumerate(SCENE.replayed) if is_replayed]


class World:
    """A fleet of random pods, as a replay has it, and as a cluster would show it."""

    def __init__(self, scene: Scene, sizes: ClusterSizeSettings, kinds: list[int]) -> None:
        self.scene = scene
        self.sizes = sizes
        self.fleet = NodeFleet(scene.resources, scene.node_kinds)
        self.situations = Situations(scene, sizes, self.fleet)
        for one in scene.recording.nodes:
            self.situations.named(self.fleet.add(scene.kind_of_node[one.node.name], ready=True), one.node)
        by_kind: dict[int, list[int]] = {}
        for number, pod in enumerate(scene.recording.pods):
            by_kind.setdefault(pod.kind, []).append(number)
        self.pending: dict[int, float] = {}
        for kind in kinds:
            if by_kind.get(kind):
                number = by_kind[kind].pop()
                if not self.fleet.place([number], kind, scene.needs[kind]):
                    self.pending[number] = NOW - 60

    def whole(self, memory: ClusterSizeMemory) -> ClusterSituation:
        """Return the situation that `run` would see."""
        slots = range(self.fleet.end)
        nodes = tuple(self.situations.node(slot) for slot in slots)
        pods = [self.situations.pod(number, "", since) for number, since in self.pending.items()]
        for slot in slots:
            name = nodes[slot].name
            kind = self.fleet.kinds[self.fleet.kind_of[slot]]
            pods += [replace(pod, name=f"{name}-{at}", node=name) for at, pod in enumerate(kind.daemons)]
            pods += [self.situations.pod(number, name, 0.0) for number in self.fleet.pods[slot]]
        group_of = {node.name: node.labels["pool"] for node in nodes}
        counts = Counter(group_of.values())
        groups = tuple(
            replace(
                group,
                nodes=tuple(name for name in group_of if group_of[name] == group.name),
                target_size=counts[group.name],
            )
            for group in self.scene.groups.groups
        )
        return ClusterSituation(
            now=NOW,
            nodes=nodes,
            pods=tuple(pods),
            groups=NodeGroups(groups, group_of),
            assumed_controllers=CONTROLLERS,
            namespace_labels={},
            memory=memory,
        )


@given(
    kinds=st.lists(st.sampled_from(KINDS), max_size=120),
    expander=st.sampled_from(["least-waste", "price", "most-pods", "least-nodes"]),
)
@settings(max_examples=40, deadline=None)
def test_groups_grow_as_in_the_whole_cluster(kinds: list[int], expander: str) -> None:
    sizes = replace(ClusterSizeSettings(NodeGroupSources(static=STATIC_GROUPS)), expanders=(expander,))
    world = World(SCENE, sizes, kinds)
    whole = decide_size(world.whole(ClusterSizeMemory()), sizes)
    small = growth_of(world.situations.grown(world.pending, NOW, ClusterSizeMemory()), sizes)
    grown = {group.name: group.recommended - (group.current or 0) for group in whole.groups}
    assert dict(small.increases) == {name: count for name, count in grown.items() if count}


@given(
    kinds=st.lists(st.sampled_from(KINDS), max_size=60),
    threshold=st.sampled_from([0.5, 0.65, 0.8]),
    cutoff=st.sampled_from([-10, 1]),
)
@settings(max_examples=40, deadline=None)
def test_nodes_go_that_go_in_the_whole_cluster(kinds: list[int], threshold: float, cutoff: int) -> None:
    base = ClusterSizeSettings(NodeGroupSources(static=STATIC_GROUPS), expendable_pods_priority_cutoff=cutoff)
    sizes = replace(base, scale_down=replace(base.scale_down, utilization_threshold_ratio=threshold))
    world = World(SCENE, sizes, kinds)
    world.pending.clear()
    memory = ClusterSizeMemory(unneeded_since={one.node.name: NOW - 900 for one in SCENE.recording.nodes})
    whole = decide_size(world.whole(memory), sizes)
    cores, shares = world.fleet.shares()
    low = [slot for slot in range(world.fleet.end) if max(cores[slot], shares[slot]) <= threshold]
    others = [slot for slot in range(world.fleet.end) if slot not in low]
    small = removals_of(world.situations.lowered(low, others, NOW, memory), sizes)
    assert [one.node for one in small.removals if one.is_due] == [one.node for one in whole.removals if one.is_due]
    remembered = whole.memory or memory
    assert dict(small.unneeded_since) == dict(remembered.unneeded_since)
    assert dict(small.unremovable_until) == dict(remembered.unremovable_until)
