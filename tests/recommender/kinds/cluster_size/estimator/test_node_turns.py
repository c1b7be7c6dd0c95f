"""Nodes that refused are not tried again in vain, and pods get the nodes that they would get if all were tried."""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, PodScheduling, PodTerm, SpreadConstraint
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.estimator.node_turns import NodeTurns
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.recommender.kinds.cluster_size.builders import node, pod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo

ZONE = "topology.kubernetes.io/zone"
APPS = [parse_selector(f"app=a{number}") for number in range(2)]
CONSTRAINTS = [
    made
    for selector in APPS
    for made in (
        PodScheduling(spread=(SpreadConstraint(ZONE, 1, selector),)),
        PodScheduling(spread=(SpreadConstraint(HOSTNAME_LABEL, 2, selector), SpreadConstraint(ZONE, 1, selector))),
        PodScheduling(spread=(SpreadConstraint(ZONE, 1, selector, min_domains=3),)),
        PodScheduling(affinity=(PodTerm(ZONE, selector, frozenset({"default"})),)),
        PodScheduling(node_selector=((ZONE, "x"),), spread=(SpreadConstraint(HOSTNAME_LABEL, 1, selector),)),
        PodScheduling(
            spread=(SpreadConstraint(ZONE, 3, selector),),
            anti_affinity=(PodTerm(HOSTNAME_LABEL, selector, frozenset({"default"})),),
        ),
    )
]
NODES = st.lists(st.tuples(st.integers(1, 4), st.sampled_from("xyz")), max_size=6)
BATCHES = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 2), st.integers(0, 1), st.sampled_from(CONSTRAINTS), NODES),
    min_size=1,
    max_size=6,
)


def of(number: int, cores: int, zone: str) -> ClusterNode:
    name = f"n{number}"
    return node(name, str(cores), "16Gi", labels={ZONE: zone, HOSTNAME_LABEL: name})


class CountingFilter(PodFilter):
    """A filter that counts how often nodes are tried."""

    asked = 0

    def fits(self, info: NodeInfo) -> bool:
        self.asked += 1
        return super().fits(info)


class EveryNode:
    """Tries each node for every pod."""

    def __init__(self, snapshot: Snapshot, judge: PodFilter) -> None:
        self._snapshot, self._judge = snapshot, judge

    def place(self, pods: Sequence[ClusterPod]) -> int:
        nodes = list(self._snapshot.nodes.values())
        start = 0
        for placed, its in enumerate(pods):
            order = [*range(start, len(nodes)), *range(start)]
            position = next((number for number in order if self._judge.fits(nodes[number])), None)
            if position is None:
                return placed
            self._snapshot.place(its, nodes[position].node.name)
            start = position
        return len(pods)


@settings(max_examples=300, deadline=None)
@given(NODES, BATCHES)
def test_pods_get_the_same_nodes_as_if_every_node_were_tried(
    present: list[tuple[int, str]],
    batches: list[tuple[int, int, int, PodScheduling, list[tuple[int, str]]]],
) -> None:
    places = []
    for is_naive in (False, True):
        nodes = [of(number, cores, zone) for number, (cores, zone) in enumerate(present)]
        snapshot = Snapshot(nodes, ())
        known: dict[int, NodeTurns] = {}
        fresh: dict[int, int] = {}
        for number, (count, cores, app, scheduling, added) in enumerate(batches):
            for one in added:
                snapshot.add_node(of(len(snapshot.nodes), *one))
            pods = [
                pod(f"p{number}-{each}", str(cores), "1Gi", labels={"app": f"a{app}"}, scheduling=scheduling)
                for each in range(count)
            ]
            shape = snapshot.shape(pods[0])
            judge = PodFilter(snapshot, shape)
            if is_naive:
                EveryNode(snapshot, judge).place(pods)
                continue
            turns = known.setdefault(id(shape), NodeTurns(snapshot, judge, shape))
            turns.add(list(snapshot.nodes.values())[fresh.get(id(shape), 0) :])
            fresh[id(shape)] = len(snapshot.nodes)
            turns.place(pods)
            turns.place([])
        places.append({key: info.node.name for info in snapshot.nodes.values() for key in info.pods})
    assert places[0] == places[1]


def test_nodes_that_refused_are_tried_again_after_a_new_node_is_reverted() -> None:
    snapshot = Snapshot([of(0, 4, "x"), of(1, 1, "y")], [])
    first, second, third, daemon = (
        pod(name, "1", "1Gi", labels={"app": "a0"}, scheduling=CONSTRAINTS[0]) for name in ("p0", "p1", "p2", "daemon")
    )
    shape = snapshot.shape(first)
    turns = NodeTurns(snapshot, PodFilter(snapshot, shape), shape)
    turns.add(list(snapshot.nodes.values()))
    assert turns.place([first, second]) == 2
    mark = snapshot.checkpoint()
    turns.add([snapshot.add_node(of(2, 1, "x"), [daemon])])
    assert turns.place([third]) == 0
    snapshot.revert(mark)
    turns.forget_refusals()
    assert turns.place([third]) == 1


def test_nodes_that_were_reverted_are_no_longer_held_once_a_node_is_added() -> None:
    snapshot = Snapshot([of(0, 1, "x")], [])
    pods = [pod(f"p{n}", "1", "1Gi", labels={"app": "a0"}, scheduling=CONSTRAINTS[0]) for n in range(3)]
    shape = snapshot.shape(pods[0])
    turns = NodeTurns(snapshot, PodFilter(snapshot, shape), shape)
    turns.add(list(snapshot.nodes.values()))
    assert turns.place(pods) == 1
    mark = snapshot.checkpoint()
    reverted = snapshot.add_node(of(1, 1, "y"))
    turns.add([reverted])
    snapshot.revert(mark)
    turns.forget_refusals()
    held = getrefcount(reverted)
    turns.add([snapshot.add_node(of(2, 2, "y"))])
    assert getrefcount(reverted) < held
    assert turns.place(pods[1:]) == 2


def test_nodes_of_other_groups_are_not_tried_for_each_pod() -> None:
    zones = ["other"] * 50 + ["mine"]
    snapshot = Snapshot([of(number, 8, zone) for number, zone in enumerate(zones)], [])
    scheduling = PodScheduling(node_selector=((ZONE, "mine"),), spread=(SpreadConstraint(ZONE, 9, APPS[0]),))
    pods = [pod(f"p{number}", "1", "1Gi", labels={"app": "a0"}, scheduling=scheduling) for number in range(8)]
    shape = snapshot.shape(pods[0])
    judge = CountingFilter(snapshot, shape)
    turns = NodeTurns(snapshot, judge, shape)
    turns.add(list(snapshot.nodes.values()))
    assert turns.place(pods) == 8
    assert judge.asked <= 16


@pytest.mark.parametrize("keys", [(ZONE,), (ZONE, HOSTNAME_LABEL)])
def test_nodes_of_a_domain_with_too_many_pods_are_not_tried_for_each_pod(keys: tuple[str, ...]) -> None:
    snapshot = Snapshot([of(number, 3, zone) for number, zone in enumerate(sorted("xyz" * 100))], [])
    scheduling = PodScheduling(spread=tuple(SpreadConstraint(key, 1, APPS[0]) for key in keys))
    pods = [pod(f"p{number}", "1", "1Gi", labels={"app": "a0"}, scheduling=scheduling) for number in range(300)]
    shape = snapshot.shape(pods[0])
    judge = CountingFilter(snapshot, shape)
    turns = NodeTurns(snapshot, judge, shape)
    turns.add(list(snapshot.nodes.values()))
    assert turns.place(pods) == 300
    assert judge.asked <= 3 * len(pods)
