"""Filters that check where other pods are: topology spread and inter-pod affinity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.constraints import (
    HOSTNAME_LABEL,
    NodeSelectorTerm,
    PodScheduling,
    PodTerm,
    SpreadConstraint,
    Toleration,
)
from adapter.foundation.cluster.values.state import ClusterPod, Taint
from adapter.foundation.objects.selectors import EVERYTHING, Operator, Requirement, parse_selector
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.support.scheduling import node, pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode

WEB = parse_selector("app=web")
DB = parse_selector("app=db")
SKEWED = "node(s) didn't match pod topology spread constraints"
UNLABELLED = f"{SKEWED} (missing required label)"
UNMET_AFFINITY = "node(s) didn't match pod affinity rules"
OWN_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
NODES = (node("a1", labels={"zone": "a"}), node("b1", labels={"zone": "b"}), node("c1", labels={"zone": "c"}))


def reasons(
    pending: ClusterPod,
    placed: Iterable[ClusterPod],
    nodes: Iterable[ClusterNode] = NODES,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, str]:
    """Return the reason of each node that refuses the pod."""
    snapshot = Snapshot(nodes, placed, namespace_labels=namespaces)
    judge = PodFilter(snapshot, snapshot.shape(pending))
    found = {name: judge.refusals(info) for name, info in snapshot.nodes.items()}
    assert [name for name, info in snapshot.nodes.items() if judge.fits(info)] == [
        name for name, refusals in found.items() if not refusals
    ]
    return {name: refusals[0].reason for name, refusals in found.items() if refusals}


def web(
    *places: str, app: str = "web", namespace: str = "shop", scheduling: PodScheduling | None = None
) -> list[ClusterPod]:
    return [
        pod(
            f"{app}-{index}",
            node=place,
            namespace=namespace,
            labels={"app": app},
            scheduling=scheduling or PodScheduling(),
        )
        for index, place in enumerate(places)
    ]


def spreading(*constraints: SpreadConstraint, app: str = "web", **others: object) -> ClusterPod:
    scheduling = PodScheduling(spread=constraints, **others)  # type: ignore[arg-type]
    return pod("new", labels={"app": app}, scheduling=scheduling)


def zone(max_skew: int = 1, **others: object) -> SpreadConstraint:
    return SpreadConstraint("zone", max_skew, others.pop("selector", WEB), **others)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("constraint", "places", "refused"),
    [
        (zone(), [], ""),
        (zone(), ["a1"], "a1"),
        (zone(), ["a1", "b1"], "a1 b1"),
        (zone(), ["a1", "b1", "c1"], ""),
        (zone(2), ["a1", "a1"], "a1"),
        (zone(2), ["a1"], ""),
        (zone(selector=DB), ["a1", "a1"], ""),
        # A pod that its own selector does not match adds nothing to its domain.
        (zone(selector=parse_selector("app in (db)")), [], ""),
        (zone(selector=None), ["a1", "a1"], ""),
        (zone(selector=EVERYTHING), ["a1", "a1"], ""),
        # With three domains where four are demanded, the smallest count is taken as 0.
        (zone(min_domains=4), ["a1", "b1", "c1"], "a1 b1 c1"),
        (zone(min_domains=3), ["a1", "b1", "c1"], ""),
    ],
)
def test_spread_allows_the_skew_over_the_emptiest_domain(
    constraint: SpreadConstraint, places: list[str], refused: str
) -> None:
    assert reasons(spreading(constraint), web(*places)) == dict.fromkeys(refused.split(), SKEWED)


def test_a_pod_not_matched_by_its_own_selector_may_join_the_largest_allowed_domain() -> None:
    placed = web("a1", app="db")
    assert reasons(spreading(zone(selector=DB), app="web"), placed) == {}
    assert reasons(spreading(zone(selector=DB), app="db"), placed) == {"a1": SKEWED}


def test_spread_counts_pods_of_its_namespace_that_are_not_being_deleted() -> None:
    leaving = pod("old", node="a1", labels={"app": "web"}, is_terminating=True)
    assert reasons(spreading(zone()), [leaving, *web("a1", namespace="other")]) == {}


def test_nodes_that_cannot_hold_the_pod_still_count_as_domains() -> None:
    full = node("c1", labels={"zone": "c"}, allocatable={"cpu": "0", "pods": "0"})
    found = reasons(spreading(zone()), web("a1", "b1"), [*NODES[:2], full])
    assert found == {"a1": SKEWED, "b1": SKEWED, "c1": "Too many pods"}


def test_nodes_without_all_topology_keys_neither_count_nor_take_the_pod() -> None:
    rack = SpreadConstraint("rack", 5, WEB)
    nodes = [
        node("a1", labels={"zone": "a", "rack": "1"}),
        node("b1", labels={"zone": "b"}),
        node("n1", labels={"rack": "2"}),
        node("c1", labels={"zone": "c", "rack": "2"}),
    ]
    found = reasons(spreading(zone(), rack), web("a1", "b1", "b1"), nodes)
    assert found == {"a1": SKEWED, "b1": UNLABELLED, "n1": UNLABELLED}


@pytest.mark.parametrize(("honors", "refused"), [(True, "c1"), (False, "a1 b1 c1")])
def test_nodes_outside_the_node_affinity_are_domains_only_if_it_is_ignored(*, honors: bool, refused: str) -> None:
    terms = (NodeSelectorTerm(labels=(Requirement("zone", Operator.IN, ("a", "b")),)),)
    pending = spreading(zone(honors_node_affinity=honors), node_terms=terms)
    assert " ".join(reasons(pending, web("a1", "b1"))) == refused


@pytest.mark.parametrize(
    ("honors", "tolerations", "refused"),
    [
        (False, (), "a1 b1 c1"),
        (True, (), "c1"),
        (True, (Toleration("x", "Exists"),), "a1 b1"),
    ],
)
def test_tainted_nodes_are_domains_unless_the_policy_honours_taints(
    tolerations: tuple[Toleration, ...], refused: str, *, honors: bool
) -> None:
    tainted = node("c1", labels={"zone": "c"}, taints=(Taint("x", "", "NoSchedule"),))
    pending = spreading(zone(honors_node_taints=honors), tolerations=tolerations)
    assert " ".join(reasons(pending, web("a1", "b1"), [*NODES[:2], tainted])) == refused


def near(*terms: PodTerm, app: str = "web") -> ClusterPod:
    return pod("new", labels={"app": app}, scheduling=PodScheduling(affinity=terms))


def apart(*terms: PodTerm, app: str = "web") -> ClusterPod:
    return pod("new", labels={"app": app}, scheduling=PodScheduling(anti_affinity=terms))


def term(selector: str | None, key: str = "zone", *, namespaces: str = "shop", among: str | None = None) -> PodTerm:
    return PodTerm(
        topology_key=key,
        selector=None if selector is None else parse_selector(selector),
        namespaces=frozenset(namespaces.split()),
        namespace_selector=None if among is None else parse_selector(among),
    )


@pytest.mark.parametrize(
    ("pending", "refused"),
    [
        (near(term("app=db")), "b1 c1 none"),
        (near(term("app=db"), term("app=db", HOSTNAME_LABEL)), "b1 c1 a2 none"),
        # No pod matches both terms, and the pod does not match them itself.
        (near(term("app=db"), term("app=cache")), "a1 b1 c1 a2 none"),
        (near(term("app=none")), "a1 b1 c1 a2 none"),
        (near(term(None)), "a1 b1 c1 a2 none"),
        # The first pod of a group with affinity to itself.
        (near(term("app=web")), "none"),
        (near(term("app=web"), term("app=web", HOSTNAME_LABEL)), "none"),
        (near(term("app=web", "absent")), "a1 b1 c1 a2 none"),
        (near(term("app=db"), app="db"), "b1 c1 none"),
        (near(term("app=db", namespaces="other")), "a1 b1 c1 a2 none"),
        (near(term("app=db", namespaces="other shop")), "b1 c1 none"),
    ],
)
def test_affinity_requires_a_matching_pod_in_each_domain(pending: ClusterPod, refused: str) -> None:
    placed = [*web("a1", app="db"), *web("b1", app="cache")]
    nodes = [*NODES, node("a2", labels={"zone": "a"}), node("none")]
    assert reasons(pending, placed, nodes) == dict.fromkeys(refused.split(), UNMET_AFFINITY)


def test_pods_being_deleted_still_count_for_affinity() -> None:
    leaving = pod("old", node="a1", labels={"app": "web"}, is_terminating=True)
    assert reasons(apart(term("app=web")), [leaving]) == {"a1": OWN_ANTI_AFFINITY}


@pytest.mark.parametrize(
    ("terms", "refused"),
    [
        ((term("app=db"),), "a1 a2"),
        ((term("app=db", HOSTNAME_LABEL),), "a1"),
        ((term("app=db", HOSTNAME_LABEL), term("app=cache")), "a1 b1"),
        ((term("app=db", "absent"),), ""),
        ((term(None),), ""),
        ((term("app=db", namespaces="other"),), ""),
    ],
)
def test_anti_affinity_refuses_the_domains_of_matching_pods(terms: tuple[PodTerm, ...], refused: str) -> None:
    nodes = [*NODES, node("a2", labels={"zone": "a"})]
    found = reasons(apart(*terms), [*web("a1", app="db"), *web("b1", app="cache")], nodes)
    assert {name: found[name] for name in sorted(found)} == dict.fromkeys(refused.split(), OWN_ANTI_AFFINITY)


@pytest.mark.parametrize(
    ("held", "refused"),
    [
        (term("app=web"), "a1"),
        (term("app=web", namespaces="shop other"), "a1"),
        (term("app=web", namespaces="other"), ""),
        (term("app=web", "absent"), ""),
        (term("app=db"), ""),
        (term("app=web", namespaces="", among="team=x"), "a1"),
        (term("app=web", namespaces="", among="team=y"), ""),
        (term("app=web", namespaces="", among=""), "a1"),
    ],
)
def test_anti_affinity_of_bound_pods_applies_to_new_ones(held: PodTerm, refused: str) -> None:
    holder = web("a1", app="db", scheduling=PodScheduling(anti_affinity=(held,)))
    found = reasons(pod("new", labels={"app": "web"}), holder, namespaces={"shop": {"team": "x"}})
    assert found == dict.fromkeys(refused.split(), EXISTING_ANTI_AFFINITY)


@pytest.mark.parametrize(
    ("namespaces", "selector", "near_refused", "apart_refused"),
    [
        ({"other": {"team": "x"}}, "team=x", "b1 c1", "a1"),
        ({"other": {"team": "y"}}, "team=x", "a1 b1 c1", ""),
        ({}, "!team", "a1 b1 c1", ""),
        ({}, "", "b1 c1", "a1"),
        # While the labels of namespaces are unknown, a pod is placed nowhere where it might not be allowed.
        (None, "team=x", "a1 b1 c1", "a1"),
    ],
)
def test_a_namespace_selector_adds_to_the_named_namespaces(
    namespaces: Mapping[str, Mapping[str, str]] | None, selector: str, near_refused: str, apart_refused: str
) -> None:
    placed, wanted = web("a1", app="db", namespace="other"), term("app=db", namespaces="shop", among=selector)
    assert reasons(near(wanted), placed, namespaces=namespaces) == dict.fromkeys(near_refused.split(), UNMET_AFFINITY)
    assert reasons(apart(wanted), placed, namespaces=namespaces) == dict.fromkeys(
        apart_refused.split(), OWN_ANTI_AFFINITY
    )


def test_a_shape_is_independent_until_a_term_of_another_pod_matches_it() -> None:
    snapshot = Snapshot(NODES, [])
    judge, info = PodFilter(snapshot, snapshot.shape(pod("w", labels={"app": "web"}))), snapshot.nodes["a1"]
    holder = pod("db", labels={"app": "db"}, scheduling=PodScheduling(anti_affinity=(term("app=web"),)))
    mark = snapshot.checkpoint()
    seen = [(judge.is_independent, judge.fits(info))]
    snapshot.place(holder, "a1")
    seen.append((judge.is_independent, judge.fits(info)))
    snapshot.revert(mark)
    seen.append((judge.is_independent, judge.fits(info)))
    assert seen == [(True, True), (False, False), (True, True)]
    assert not PodFilter(snapshot, snapshot.shape(near(term("app=web")))).is_independent
    assert not PodFilter(snapshot, snapshot.shape(spreading(zone()))).is_independent


@pytest.mark.parametrize(
    ("pending", "room"),
    [
        (apart(term("app=web", HOSTNAME_LABEL)), 1),
        (apart(term("app=db", HOSTNAME_LABEL)), 110),
        (near(term("app=web")), 110),
        (spreading(zone(3)), 3),
    ],
)
def test_room_counts_the_effect_of_pods_of_one_shape_on_each_other(pending: ClusterPod, room: int) -> None:
    snapshot = Snapshot(NODES, [])
    judge = PodFilter(snapshot, snapshot.shape(pending))
    assert judge.room(snapshot.nodes["a1"], 200) == room
    assert judge.room(snapshot.nodes["a1"], 200) == room


def test_new_nodes_are_new_domains() -> None:
    snapshot = Snapshot(NODES[:2], web("a1", "b1"))
    judge = PodFilter(snapshot, snapshot.shape(spreading(zone())))
    info = snapshot.nodes["a1"]
    assert judge.fits(info)
    mark = snapshot.checkpoint()
    snapshot.add_node(NODES[2])
    assert not judge.fits(info)
    snapshot.revert(mark)
    assert judge.fits(info)
    snapshot.evict(web("a1", "b1")[1])
    assert not judge.fits(info)
    snapshot.remove_node("b1")
    assert judge.fits(info)
