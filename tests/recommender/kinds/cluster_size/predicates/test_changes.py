"""A snapshot that is changed has the same counts as a new snapshot of the same cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.constraints import (
    HOSTNAME_LABEL,
    NO_CONSTRAINTS,
    HostPort,
    NodeSelectorTerm,
    PodScheduling,
    PodTerm,
    SpreadConstraint,
)
from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod, Observed, Taint
from adapter.foundation.cluster.values.storage import CsiNodeFacts, Storage, Volume, VolumeClaim
from adapter.foundation.objects.requirements import Operator, Requirement
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.support.scheduling import node, pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal

WEB, DB = parse_selector("app=web"), parse_selector("app in (db,cache)")
NAMESPACES = {"shop": {"team": "x"}, "other": {"team": "y"}}
CLAIMS = {
    ("shop", "data"): VolumeClaim("shop", "data", "v1", None, is_bound=True, access_modes=("ReadWriteOncePod",)),
    ("shop", "logs"): VolumeClaim("shop", "logs", "v2", None, is_bound=True),
}
VOLUMES = {
    name: Volume(name, {"topology.kubernetes.io/zone": "a"}, None, "", 1, (), "d", name) for name in ("v1", "v2")
}
STORAGE = Storage(
    claims=Observed(CLAIMS, 0),
    volumes=Observed(VOLUMES, 0),
    classes=Observed({}, 0),
    csi_nodes=Observed({name: CsiNodeFacts(name, {"d": 1}) for name in ("n0", "n1")}, 0),
)
NODES = tuple(
    node(
        f"n{index}",
        labels={"zone": zone} if zone else {},
        allocatable={"cpu": "2", "pods": "8"},
        taints=(Taint("x", "", "NoSchedule"),) if index == 2 else (),
        unschedulable=index == 5,
    )
    for index, zone in enumerate(("a", "a", "b", "b", "c", "", "d"))
)

ANY_ADDRESS, ONE_ADDRESS = HostPort("TCP", "0.0.0.0", 80), HostPort("TCP", "127.0.0.1", 80)
ZONE_A_OR_B = (NodeSelectorTerm((Requirement("zone", Operator.IN, ("a", "b")),)),)
SHOP, BOTH = frozenset({"shop"}), frozenset({"shop", "other"})
SPREAD = (
    SpreadConstraint("zone", 1, WEB),
    SpreadConstraint("zone", 1, WEB, min_domains=4),
    SpreadConstraint("zone", 1, WEB, honors_node_affinity=False, honors_node_taints=True),
    SpreadConstraint("zone", 2, DB),
    SpreadConstraint(HOSTNAME_LABEL, 1, WEB),
    SpreadConstraint("zone", 1, EVERYTHING),
    SpreadConstraint("zone", 1, None),
)
TERMS = (
    PodTerm("zone", WEB, SHOP),
    PodTerm(HOSTNAME_LABEL, WEB, SHOP),
    PodTerm("zone", DB, BOTH),
    PodTerm("zone", DB, frozenset(), EVERYTHING),
    PodTerm("zone", WEB, SHOP, parse_selector("team=y")),
    PodTerm("zone", None, SHOP),
)
spread = st.lists(st.sampled_from(SPREAD), min_size=1, max_size=2).map(tuple)
terms = st.lists(st.sampled_from(TERMS), min_size=1, max_size=2).map(tuple)
constraints = st.one_of(
    st.just(NO_CONSTRAINTS),
    st.builds(PodScheduling, spread=spread, node_terms=st.sampled_from((None, ZONE_A_OR_B))),
    st.builds(PodScheduling, affinity=terms),
    st.builds(PodScheduling, anti_affinity=terms),
    st.builds(PodScheduling, anti_affinity=terms, spread=spread),
    st.builds(PodScheduling, host_ports=st.sampled_from(((ANY_ADDRESS,), (ONE_ADDRESS,)))),
    st.builds(PodScheduling, claims=st.sampled_from((("data",), ("logs",), ("data", "logs")))),
    st.builds(PodScheduling, inline_volumes=st.sampled_from((("rbd/x",), ("rbd/x:ro",)))),
)
kinds = st.builds(
    pod,
    st.just("kind"),
    namespace=st.sampled_from(("shop", "shop", "other")),
    labels=st.sampled_from(({"app": "web"}, {"app": "web"}, {"app": "db"})),
    requests=st.sampled_from(({}, {"cpu": 100}, {"cpu": 400})),
    scheduling=constraints,
)


@dataclass
class Harness:
    """A snapshot that is changed, and plain lists of its expected content."""

    snapshot: Snapshot
    nodes: list[ClusterNode]
    pods: list[tuple[ClusterPod, str]]

    def placed(self) -> list[ClusterPod]:
        return [replace(one, node=place) for one, place in self.pods]


def harness(pods: list[ClusterPod]) -> Harness:
    started = Harness(Snapshot(NODES[:4], pods, STORAGE, NAMESPACES), list(NODES[:4]), [])
    started.pods = [(one, one.node) for one in pods]
    return started


def change(data: st.DataObject, current: Harness, kinds: list[ClusterPod], number: int) -> None:
    """Make one random change."""
    present = {one.name for one in current.nodes}
    absent = [one for one in NODES if one.name not in present]
    choices = ["place"] * (2 if present else 0) + ["evict"] * bool(current.pods)
    choices += ["add"] * bool(absent) + ["remove"] * bool(present)
    match data.draw(st.sampled_from(choices)):
        case "place":
            place = data.draw(st.sampled_from(sorted(present)))
            one = replace(data.draw(st.sampled_from(kinds)), name=f"p{number}", is_terminating=data.draw(st.booleans()))
            current.snapshot.place(one, place)
            current.pods.append((one, place))
        case "evict":
            one, _ = chosen = data.draw(st.sampled_from(current.pods))
            current.snapshot.evict(one)
            current.pods.remove(chosen)
        case "add":
            added = data.draw(st.sampled_from(absent))
            agent = replace(data.draw(st.sampled_from(kinds)), name=f"agent{number}")
            current.snapshot.add_node(added, [agent])
            current.nodes.append(added)
            current.pods.append((agent, added.name))
        case _:
            name = data.draw(st.sampled_from(sorted(present)))
            current.snapshot.remove_node(name)
            current.nodes = [one for one in current.nodes if one.name != name]
            current.pods = [(one, place) for one, place in current.pods if place != name]


def verdicts(snapshot: Snapshot, filters: list[PodFilter]) -> list[dict[str, tuple[Refusal, ...]]]:
    """Return each filter's refusals by node, having checked that a node fits exactly if it has none."""
    found = [{name: judge.refusals(info) for name, info in snapshot.nodes.items()} for judge in filters]
    for judge, refused in zip(filters, found, strict=True):
        for name, info in snapshot.nodes.items():
            assert judge.fits(info) == (refused[name] == ())
    return found


def contents(snapshot: Snapshot) -> Mapping[str, tuple[dict[str, int], list[tuple[str, str]], int]]:
    return {name: (dict(info.requested), list(info.pods), info.pod_count) for name, info in snapshot.nodes.items()}


def filters_of(snapshot: Snapshot, kinds: list[ClusterPod]) -> list[PodFilter]:
    return [PodFilter(snapshot, snapshot.shape(kind)) for kind in kinds]


@settings(max_examples=70, deadline=None)
@given(data=st.data(), kinds=st.lists(kinds, min_size=3, max_size=6))
def test_counts_after_changes_equal_those_of_a_new_snapshot(data: st.DataObject, kinds: list[ClusterPod]) -> None:
    bound = [replace(one, name=f"b{index}", node=f"n{index % 4}") for index, one in enumerate(kinds)]
    current = harness(bound)
    early = filters_of(current.snapshot, kinds[::2])
    mark, before = current.snapshot.checkpoint(), contents(current.snapshot)
    late = filters_of(current.snapshot, kinds)
    verdicts_before = verdicts(current.snapshot, late)
    for number in range(data.draw(st.integers(2, 10))):
        change(data, current, kinds, number)
    fresh = Snapshot(current.nodes, current.placed(), STORAGE, NAMESPACES)
    expected = verdicts(fresh, filters_of(fresh, kinds))
    assert verdicts(current.snapshot, late) == expected
    assert verdicts(current.snapshot, filters_of(current.snapshot, kinds)) == expected
    assert verdicts(current.snapshot, early) == expected[::2]
    assert {name: sorted(one[1]) for name, one in contents(fresh).items()} == {
        name: sorted(one[1]) for name, one in contents(current.snapshot).items()
    }
    current.snapshot.revert(mark)
    assert contents(current.snapshot) == before
    assert list(contents(current.snapshot)) == list(before)
    assert verdicts(current.snapshot, late) == verdicts_before


@settings(max_examples=50, deadline=None)
@given(kinds=st.lists(kinds, min_size=1, max_size=3), at_most=st.integers(0, 12))
def test_room_equals_the_number_of_pods_that_can_be_placed_one_by_one(kinds: list[ClusterPod], at_most: int) -> None:
    snapshot = harness([replace(one, name=f"b{index}", node="n0") for index, one in enumerate(kinds[1:])]).snapshot
    judge = PodFilter(snapshot, snapshot.shape(kinds[0]))
    before = contents(snapshot)
    for name, info in snapshot.nodes.items():
        room = judge.room(info, at_most)
        assert contents(snapshot) == before
        mark, placed = snapshot.checkpoint(), 0
        while placed < at_most and judge.fits(info):
            snapshot.place(replace(kinds[0], name=f"new{placed}"), name)
            placed += 1
        snapshot.revert(mark)
        assert room == placed
