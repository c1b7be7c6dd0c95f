"""How many anti-affinity terms of bound pods one decision considers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, PodScheduling, PodTerm
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from recommender.kinds.cluster_size import anti_affinity_work_limit
from recommender.kinds.cluster_size.anti_affinity_work_limit import within_term_bound
from recommender.kinds.cluster_size.calculate import decide_size
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.options import group, template
from tests.recommender.kinds.cluster_size.scale_up.harnesses import settings, situation

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod

NODES = tuple(
    node(f"n{number}", labels={HOSTNAME_LABEL: f"n{number}", "zone": f"z{number % 2}"}) for number in range(4)
)
EVIL = frozenset({"evil"})
SELECTORS = tuple(
    map(parse_selector, ("app=web", "app=db", "app in (web,db)", "app!=web", "app", "!app", "tier=x,app=web"))
)
NAMESPACES = {"shop": {"team": "x"}, "evil": {"team": "y"}}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anti_affinity_work_limit, "MOST_ASKED_TERMS", 4)
    monkeypatch.setattr(anti_affinity_work_limit, "MOST_FOUND_TERMS", 8)


def owner(number: int, *terms: PodTerm, namespace: str = "evil", place: str = "n0") -> ClusterPod:
    return pod(
        f"b{number}", node=place, namespace=namespace, controller="rs", scheduling=PodScheduling(anti_affinity=terms)
    )


def not_app(number: int, namespace: str = "evil") -> PodTerm:
    return PodTerm(HOSTNAME_LABEL, parse_selector(f"app!=x{number}"), frozenset({namespace}), EVERYTHING)


def app(name: str, namespace: str = "evil") -> PodTerm:
    return PodTerm(HOSTNAME_LABEL, parse_selector(f"app={name}"), frozenset({namespace}))


def test_terms_within_the_bound_leave_all_pods_unchanged() -> None:
    pods = tuple(owner(number, not_app(number)) for number in range(4))
    bound = within_term_bound(pods, NODES)
    assert bound.pods is pods
    assert not bound.notes


def test_equal_terms_count_once() -> None:
    pods = tuple(owner(number, not_app(number % 4)) for number in range(40))
    assert not within_term_bound(pods, NODES).notes


@pytest.mark.parametrize(
    ("terms", "beyond"),
    [
        pytest.param([(not_app(number),) for number in range(6)], 2, id="each is evaluated"),
        pytest.param([(app(f"x{number}"),) for number in range(6)], 0, id="found by a label"),
        pytest.param([(app(f"x{number}"),) for number in range(9)], 1, id="too many to be found"),
        pytest.param([tuple(map(not_app, range(5))), (not_app(9),)], 1, id="one pod has too many"),
        pytest.param([(replace(app("x"), selector=None),) for _ in range(9)], 0, id="matches nothing"),
    ],
)
def test_pods_beyond_the_bound_are_reported_and_keep_their_node(terms: list[tuple[PodTerm, ...]], beyond: int) -> None:
    pods = tuple(owner(number, *its) for number, its in enumerate(terms))
    bound = within_term_bound(pods, NODES)
    assert sum(bool(one.facts and one.facts.problem) for one in bound.pods) == beyond
    assert [note.split(":")[0] for note in bound.notes] == ["namespace evil"][:beyond]
    assert not beyond or f" {beyond} bound pod" in bound.notes[0]


def test_many_terms_that_require_the_same_label_count_as_expensive(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an attack, each term requires the label that all pods of the other terms have, too."""
    monkeypatch.setattr(anti_affinity_work_limit, "_MOST_BY_LABEL", 2)
    crowd = [PodTerm(HOSTNAME_LABEL, parse_selector(f"app=web,x!=y{number}"), EVIL, EVERYTHING) for number in range(9)]
    bound = within_term_bound(tuple(owner(number, one) for number, one in enumerate(crowd)), NODES)
    assert "3 bound pods" in bound.notes[0]


def test_the_many_terms_of_a_tenant_do_not_affect_other_tenants() -> None:
    evil = [owner(number, not_app(number)) for number in range(50)]
    shop = [owner(number, not_app(number, "shop"), namespace="shop", place="n1") for number in range(2)]
    bound = within_term_bound((*evil, *shop), NODES)
    assert bound.pods[-2:] == tuple(shop)
    assert [note.split(":")[0] for note in bound.notes] == ["namespace evil"]


terms = st.builds(
    PodTerm,
    st.sampled_from((HOSTNAME_LABEL, "zone", "absent")),
    st.sampled_from((*SELECTORS, None)),
    st.sampled_from((EVIL, frozenset({"shop"}), frozenset({"shop", "evil"}))),
    st.sampled_from((None, None, EVERYTHING, parse_selector("team=x"))),
)
bound_pods = st.builds(
    lambda its, namespace, place: owner(0, *its, namespace=namespace, place=f"n{place}"),
    st.lists(terms, max_size=3),
    st.sampled_from(("evil", "shop")),
    st.integers(0, 3),
)


@given(
    st.lists(bound_pods, max_size=8),
    st.sampled_from(({}, {"app": "web"}, {"app": "db", "tier": "x"}, {"app": "web", "tier": "x"})),
    st.sampled_from(("evil", "shop")),
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
)
def test_no_pod_is_placed_against_a_term_even_if_terms_exceed_the_bound(
    pods: list[ClusterPod], labels: dict[str, str], namespace: str, most: tuple[int, int]
) -> None:
    pods = [replace(one, name=f"b{number}") for number, one in enumerate(pods)]
    pending = pod("p", namespace=namespace, labels=labels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anti_affinity_work_limit, "MOST_ASKED_TERMS", most[0])
        patch.setattr(anti_affinity_work_limit, "MOST_FOUND_TERMS", most[1])
        bound = within_term_bound(tuple(pods), NODES)
    exact, counted = (Snapshot(NODES, them, namespace_labels=NAMESPACES) for them in (pods, bound.pods))
    fits = [PodFilter(one, one.shape(pending)).fits for one in (exact, counted)]
    for name in exact.nodes:
        assert fits[0](exact.nodes[name]) or not fits[1](counted.nodes[name])
    assert bound.notes or [fits[0](one) for one in exact.nodes.values()] == [
        fits[1](one) for one in counted.nodes.values()
    ]


def test_the_node_of_a_pod_beyond_the_bound_is_kept_and_others_are_removed() -> None:
    names = ("n0", "n1", "n2")
    members = replace(group("a", size=3, nodes=names, max_size=3, node_template=template("4", "8Gi")), min_size=0)
    pods = [owner(number, *map(not_app, range(number * 9, number * 9 + 9))) for number in range(2)]
    its = situation([members], nodes=NODES[:3], pods=pods, waits=False, assumed_controllers=frozenset({"ReplicaSet"}))
    answer = decide_size(its, settings())
    (kept,) = (one for one in answer.kept if one.node == "n0")
    assert "more anti-affinity terms" in kept.reason
    assert [one.node for one in answer.removals] == ["n1", "n2"]
    assert any(note.startswith("namespace evil: 2 bound pods") for note in answer.notes)


def test_work_does_not_grow_with_terms_of_bound_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an attack, 40 x 10 different terms on bound pods were evaluated 4,000 times for 10 shapes."""
    asked: list[str] = []
    name = "recommender.kinds.cluster_size.predicates.namespaces.Namespaces.are_selected"
    monkeypatch.setattr(name, lambda _, _term, namespace: asked.append(namespace))
    pods = tuple(owner(number, *(not_app(number * 10 + one) for one in range(10))) for number in range(40))
    monkeypatch.setattr(anti_affinity_work_limit, "MOST_ASKED_TERMS", 20)
    snapshot = Snapshot(NODES, within_term_bound(pods, NODES).pods)
    for number in range(10):
        PodFilter(snapshot, snapshot.shape(pod("p", labels={"app": f"w{number}"}, namespace="shop")))
    assert len(asked) == 10 * 21
