"""Nodes of a replay: a pod gets the same node however much is cached from earlier pods."""

from __future__ import annotations

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.made_past import PastPlan, made_past
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources
from recommender.replay.cluster.fleet import NodeFleet
from recommender.replay.cluster.replay_facts import scene_of
from tests.recommender.replay.groups import STATIC_GROUPS

SCENE: Final = scene_of(
    made_past(PastPlan(days=0.1, nodes=6)), ClusterSizeSettings(NodeGroupSources(static=STATIC_GROUPS))
)
KINDS: Final = [number for number, is_replayed in enumerate(SCENE.replayed) if is_replayed]
MOST_NODES: Final = 80


@given(
    st.lists(
        st.tuples(st.sampled_from(["come", "come", "come", "end", "node", "cordon", "lose"]), st.integers(0, 10**6)),
        max_size=120,
    )
)
@settings(max_examples=60, deadline=None)
def test_pods_get_the_same_node_as_without_a_cache(changes: list[tuple[str, int]]) -> None:
    fleet = NodeFleet(SCENE.resources, SCENE.node_kinds)
    for number in range(4):
        fleet.add(number % 2, ready=True)
    placed: list[tuple[int, int, int]] = []
    for pod, (change, choice) in enumerate(changes):
        kind = KINDS[choice % len(KINDS)]
        there = [slot for slot in range(fleet.end) if fleet.exists[slot]]
        if change == "come":
            expected = _fresh(fleet).place([pod], kind, SCENE.needs[kind])
            assert fleet.place([pod], kind, SCENE.needs[kind]) == expected
            placed += [(pod, kind, slot) for slot in expected]
        elif change == "end" and placed:
            ending, its_kind, slot = placed.pop(choice % len(placed))
            fleet.take(ending, SCENE.needs[its_kind], slot)
        elif change == "node" and len(there) < MOST_NODES:
            fleet.add(choice % 2, ready=True)
        elif change == "cordon" and there:
            fleet.set_usable(there[choice % len(there)], usable=bool(choice % 3))
        elif change == "lose" and there:
            gone = there[choice % len(there)]
            fleet.remove(gone)
            placed = [one for one in placed if one[2] != gone]


def _fresh(fleet: NodeFleet) -> NodeFleet:
    """Return a fleet with the same nodes that has placed no pod yet."""
    found = NodeFleet(SCENE.resources, SCENE.node_kinds)
    for slot in range(fleet.end):
        found.add(int(fleet.kind_of[slot]), ready=bool(fleet.usable[slot]))
        for pod, kind in fleet.pods[slot].items():
            found.put(pod, kind, SCENE.needs[kind], slot)
        if not fleet.exists[slot]:
            found.set_usable(slot, usable=False)
    return found
