"""A replay decides as `run` does: its reduced situation gets the same answer as the whole cluster."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.made_past import START, PastPlan, made_past
from benchmarks.replay import GROUPS as UNEVEN_GROUPS
from recommender.kinds.cluster_size.calculate import decide_size
from recommender.kinds.cluster_size.future.headroom import headroom_pods
from recommender.kinds.cluster_size.known_cluster import CONTROLLERS
from recommender.kinds.cluster_size.model.groups import NodeGroups
from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources, SizeLimits
from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
from recommender.replay.cluster.events import events_of
from recommender.replay.cluster.fleet import NodeFleet
from recommender.replay.cluster.replay_facts import scene_of
from recommender.replay.cluster.reserve import Reserve
from recommender.replay.cluster.scheduler import Scheduler
from recommender.replay.cluster.situations import Situations
from recommender.replay.policies import ReplayPolicy
from recommender.replay.policy_outcome import Account
from recommender.replay.simulation.decisions import growth_of, removals_of
from recommender.replay.simulation.known_growth import KnownGrowth, growth_key
from recommender.replay.simulation.simulation import outcomes_of, simulate
from tests.recommender.replay.groups import STATIC_GROUPS
from tests.recommender.replay.outcomes import values_of

if TYPE_CHECKING:
    from recommender.replay.cluster.replay_facts import Scene

NOW = START + 3600.0
SCENE = scene_of(
    made_past(PastPlan(days=0.2, nodes=12, seed=3)), ClusterSizeSettings(NodeGroupSources(static=STATIC_GROUPS))
)
KINDS = [number for number, is_replayed in enumerate(SCENE.replayed) if is_replayed]


class Harness:
    """A fleet of random pods, in the form of a replay and in the form of a cluster."""

    def __init__(self, scene: Scene, sizes: ClusterSizeSettings, kinds: list[int]) -> None:
        self.scene = scene
        self.sizes = sizes
        self.fleet = NodeFleet(scene.resources, scene.node_kinds)
        self.situations = Situations(scene, sizes, self.fleet)
        for one in scene.recording.nodes:
            self.situations.note_node(self.fleet.add(scene.kind_of_node[one.node.name], ready=True), one.node)
        by_kind: dict[int, list[int]] = {}
        for number, pod in enumerate(scene.recording.pods):
            by_kind.setdefault(pod.kind, []).append(number)
        self.pending: dict[int, float] = {}
        self.scheduler = Scheduler(scene, self.fleet, Account(NOW, NOW + 1, {}))
        self.reserve = Reserve(scene, sizes, self.fleet, self.scheduler)
        for kind in kinds:
            if by_kind.get(kind):
                number = by_kind[kind].pop()
                self.scheduler.alive[kind] += 1
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
            future_pods=headroom_pods(self.sizes.headroom_ratio, pods),
        )


@given(
    kinds=st.lists(st.sampled_from(KINDS), max_size=120),
    expander=st.sampled_from(["least-waste", "price", "most-pods", "least-nodes"]),
    headroom=st.sampled_from([0.0, 0.1, 0.5, 2.0]),
)
@settings(max_examples=40, deadline=None)
def test_groups_grow_as_if_decided_on_the_whole_cluster(kinds: list[int], expander: str, headroom: float) -> None:
    base = ClusterSizeSettings(NodeGroupSources(static=STATIC_GROUPS))
    sizes = replace(base, expanders=(expander,), headroom_ratio=headroom)
    harness = Harness(SCENE, sizes, kinds)
    whole = decide_size(harness.whole(ClusterSizeMemory()), sizes)
    situation = harness.situations.grown(harness.pending, NOW, ClusterSizeMemory())
    small = growth_of(replace(situation, future_pods=harness.reserve.pods(NOW)), sizes)
    grown = {group.name: group.recommended - (group.current or 0) for group in whole.groups}
    assert dict(small.increases) == {name: count for name, count in grown.items() if count}
    if not harness.pending:
        assert harness.reserve.is_short(NOW) == any(grown.values())


@given(
    kinds=st.lists(st.sampled_from(KINDS), max_size=60),
    threshold=st.sampled_from([0.5, 0.65, 0.8]),
    cutoff=st.sampled_from([-10, 1]),
    headroom=st.sampled_from([0.0, 0.3, 1.0]),
    min_cores=st.sampled_from([0, 100, 120]),
)
@settings(max_examples=40, deadline=None)
def test_nodes_are_removed_as_if_decided_on_the_whole_cluster(
    kinds: list[int], threshold: float, cutoff: int, headroom: float, min_cores: int
) -> None:
    base = ClusterSizeSettings(NodeGroupSources(static=STATIC_GROUPS), expendable_pods_priority_cutoff=cutoff)
    limits = SizeLimits(min_cores=min_cores)
    sizes = replace(
        base,
        headroom_ratio=headroom,
        limits=limits,
        scale_down=replace(base.scale_down, utilization_threshold_ratio=threshold),
    )
    harness = Harness(SCENE, sizes, kinds)
    for number in harness.pending:
        harness.scheduler.alive[SCENE.recording.pods[number].kind] -= 1
    harness.pending.clear()
    memory = ClusterSizeMemory(unneeded_since={one.node.name: NOW - 900 for one in SCENE.recording.nodes})
    whole = decide_size(harness.whole(memory), sizes)
    cores, shares = harness.fleet.shares()
    low = [slot for slot in range(harness.fleet.end) if max(cores[slot], shares[slot]) <= threshold]
    others = [slot for slot in range(harness.fleet.end) if slot not in low]
    situation = harness.situations.removal_situation(low[::-1], others, NOW, memory)
    small = removals_of(replace(situation, future_pods=harness.reserve.pods(NOW)), sizes)
    assert [one.node for one in small.removals if one.is_due] == [one.node for one in whole.removals if one.is_due]
    spared = harness.reserve.removable(NOW)
    slots = {harness.situations.node(slot).name: slot for slot in range(harness.fleet.end)}
    assert all(spared[slots[one.node]] for one in whole.removals), "what the reserve keeps is not examined"
    remembered = whole.memory or memory
    assert dict(small.unneeded_since) == dict(remembered.unneeded_since)
    assert dict(small.unremovable_until) == dict(remembered.unremovable_until)


def test_a_reserve_costs_nodes_and_shortens_waits() -> None:
    found = []
    for ratio in (0.0, 0.3):
        sizes = ClusterSizeSettings(NodeGroupSources(static=STATIC_GROUPS), headroom_ratio=ratio)
        scene = scene_of(made_past(PastPlan(days=1, nodes=12, seed=3)), sizes)
        found.append(simulate(scene, ReplayPolicy("one", sizes), events_of(scene)).outcome)
    without, kept = found
    assert kept.node_hours.sum() > 1.15 * without.node_hours.sum()
    assert kept.pending_minutes.sum() < without.pending_minutes.sum()


def test_policies_that_decide_alike_are_simulated_once_with_unchanged_results() -> None:
    sizes = ClusterSizeSettings(NodeGroupSources(static=UNEVEN_GROUPS))
    scene = scene_of(made_past(PastPlan(days=1, nodes=60, seed=3)), sizes)
    past = events_of(scene)
    expanders = ("least-waste", "most-pods", "price")
    policies = [ReplayPolicy(one, replace(sizes, expanders=(one,))) for one in expanders]
    policies.append(ReplayPolicy("later", replace(sizes, scale_down=replace(sizes.scale_down, unneeded_seconds=1800))))
    alone = [simulate(scene, one, past).outcome for one in policies]
    alike = simulate(scene, policies[0], past, policies[1:3]).alike
    assert [one.name for one in alike] == ["most-pods"], "price chooses other nodes"
    together = list(outcomes_of(scene, policies, past))
    assert list(map(values_of, together)) == list(map(values_of, alone))


def _starting_harness(slots: tuple[int, ...] = (0,), most: int = 2000) -> Harness:
    """Return a harness in which the nodes of these slots are starting, and groups have at most this many nodes."""
    groups = replace(SCENE.groups, groups=tuple(replace(group, max_size=most) for group in SCENE.groups.groups))
    harness = Harness(replace(SCENE, groups=groups), ClusterSizeSettings(NodeGroupSources(static=STATIC_GROUPS)), [])
    for slot in slots:
        harness.fleet.set_usable(slot, usable=False)
    return harness


def _key(harness: Harness, pods: dict[int, dict[int, float]]) -> object:
    return growth_key(harness.situations, pods, KnownGrowth().likes_of(harness.scene), harness.sizes, NOW)


def test_a_decision_is_reused_only_for_equal_pods_starting_nodes_and_limits() -> None:
    first, second = KINDS[0], KINDS[1]
    pods = {first: {1: NOW - 60, 2: NOW - 60}}
    harness = _starting_harness()
    fuller = _starting_harness()
    fuller.fleet.put(9, first, SCENE.needs[first], 0)
    elsewhere = next(
        slot for slot in range(1, harness.fleet.end) if harness.fleet.kind_of[slot] != harness.fleet.kind_of[0]
    )
    key = _key(harness, pods)
    assert key is not None
    assert _key(_starting_harness(), {first: {7: NOW - 90, 8: NOW - 3}}) == key, "other pods of the same kind"
    different = {
        "a further pod": _key(harness, {first: {**pods[first], 3: NOW - 60}}),
        "another kind": _key(harness, {second: pods[first]}),
        "a fuller node": _key(fuller, pods),
        "a node of another kind": _key(_starting_harness((elsewhere,)), pods),
        "one more starting node": _key(_starting_harness((0, 1)), pods),
        "no starting node": _key(_starting_harness(()), pods),
        "full groups": _key(_starting_harness(most=1), pods),
    }
    assert [name for name, other in different.items() if other == key] == []
    assert _key(harness, {first: {1: NOW - 60, 2: NOW - 1}}) is None, "a young pod's turn depends on the moment"


def test_a_decision_is_reused_for_pods_that_differ_only_by_their_controller() -> None:
    kinds = SCENE.recording.pod_kinds
    like = [number for number in KINDS if kinds[number].resources == kinds[KINDS[0]].resources]
    other = next(number for number in KINDS if number not in like)
    owner = kinds[like[0]].controller
    one_owner = tuple(
        replace(kind, controller=owner) if place in like[:2] else kind for place, kind in enumerate(kinds)
    )
    ambiguous = replace(SCENE, recording=replace(SCENE.recording, pod_kinds=one_owner))
    known = KnownGrowth()
    alike, apart = known.likes_of(SCENE), known.likes_of(ambiguous)
    assert {alike[number] for number in like} == {like[0]}
    assert alike[other] != alike[like[0]]
    assert len({apart[number] for number in like[:3]}) == 3, "two kinds of one controller are one group of pods"
    harness = _starting_harness()
    first, second, third = like[:3]
    once = _key(harness, {first: {1: NOW - 60, 2: NOW - 60}, other: {3: NOW - 60}})
    assert _key(harness, {second: {1: NOW - 60}, third: {2: NOW - 60}, other: {3: NOW - 60}}) == once
    assert _key(harness, {second: {1: NOW - 60}, other: {3: NOW - 60}, third: {2: NOW - 60}}) != once, "another order"


def test_reused_decisions_do_not_change_the_result() -> None:
    sizes = ClusterSizeSettings(NodeGroupSources(static=UNEVEN_GROUPS), expanders=("price",))
    scene = scene_of(made_past(PastPlan(days=1, nodes=60, seed=4)), sizes)
    past = events_of(scene)
    policies = [
        ReplayPolicy("present", sizes),
        ReplayPolicy("small", replace(sizes, max_nodes_per_scale_up=1)),
        ReplayPolicy("late", replace(sizes, new_pod_scale_up_delay_seconds=30)),
        ReplayPolicy("most-pods", replace(sizes, expanders=("most-pods",))),
        ReplayPolicy("fuller", replace(sizes, scale_down=replace(sizes.scale_down, utilization_threshold_ratio=0.8))),
    ]
    none, known = KnownGrowth(most=0), KnownGrowth()
    for policy in policies:
        made = simulate(scene, policy, past, known=none).outcome
        remembered = simulate(scene, policy, past, known=known).outcome
        assert values_of(remembered) == values_of(made)
    assert len(known) > len(none)
