"""How many different pods one decision considers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, PodScheduling, PodTerm
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from recommender.kinds.cluster_size.calculate import decide_size
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from recommender.kinds.cluster_size.scale_up import pod_work_limit
from recommender.kinds.cluster_size.scale_up.pod_work_limit import NOT_LOOKED_AT, cost_of, within_bound
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.options import group, template
from tests.recommender.kinds.cluster_size.scale_up.harnesses import settings, situation

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer

APART = PodScheduling(anti_affinity=(PodTerm(HOSTNAME_LABEL, EVERYTHING, frozenset({"evil"})),))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_work_limit, "MOST_SHAPES", 3)
    monkeypatch.setattr(pod_work_limit, "MOST_RELATED_SHAPES", 2)


def test_a_tenant_with_many_different_pods_does_not_delay_pods_of_others() -> None:
    evil = [pod(f"e{number}", f"{number + 1}m", namespace="evil") for number in range(9)]
    first = pod("first", "1", namespace="evil", priority=7)
    web = [pod(f"w{number}", "1", namespace="shop") for number in range(5)]

    looked_at, beyond = within_bound([*evil, first, *web], Snapshot((), ()))

    assert looked_at == [evil[0], first, *web]
    assert beyond == evil[1:]


def test_pods_that_depend_on_others_have_a_smaller_bound() -> None:
    evil = [pod(f"e{number}", f"{number + 1}m", namespace="evil", scheduling=APART) for number in range(5)]
    plain = [pod("plain")]

    assert within_bound([*evil, *plain], Snapshot((), ())) == ([*evil[:2], *plain], evil[2:])


def many_terms(count: int) -> PodScheduling:
    selectors = (parse_selector(f"app=x{number}") for number in range(count))
    return PodScheduling(
        anti_affinity=tuple(PodTerm(HOSTNAME_LABEL, selector, frozenset({"evil"})) for selector in selectors)
    )


def test_many_terms_or_labels_count_as_more_work_and_namespaces_take_turns() -> None:
    """In an attack, few pods each need as much work as many."""
    evil = [pod(f"e{number}", f"{number + 1}m", namespace="evil", scheduling=many_terms(20)) for number in range(3)]
    web = [pod(f"w{number}", f"{number + 1}m", namespace="shop", scheduling=APART) for number in range(2)]
    assert within_bound([*evil, *web], Snapshot((), ())) == (web, evil)
    labelled = pod("l", namespace="evil", labels={f"l{number}": "x" for number in range(200)})
    plain = [pod(f"p{number}", f"{number + 1}m", namespace="shop") for number in range(3)]
    assert within_bound([labelled, *plain], Snapshot((), ())) == (plain, [labelled])


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60)), max_size=30),
    st.integers(1, 12),
)
def test_each_namespace_gets_its_share_and_the_total_stays_within_the_bound(
    sizes: list[tuple[str, int]], most: int
) -> None:
    pods = [
        pod(f"p{number}", f"{number + 1}m", namespace=namespace, scheduling=many_terms(terms + 1))
        for number, (namespace, terms) in enumerate(sizes)
    ]
    snapshot = Snapshot((), ())
    costs = {one.name: cost_of(snapshot.shape(one)) for one in pods}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pod_work_limit, "MOST_RELATED_SHAPES", most)
        looked_at, beyond = within_bound(pods, snapshot)
    assert sorted(one.name for one in (*looked_at, *beyond)) == sorted(costs)
    assert sum(costs[one.name] for one in looked_at) <= most
    spaces = {one.namespace for one in pods}
    for namespace in spaces:
        own = [one for one in pods if one.namespace == namespace]
        if sum(costs[one.name] for one in own) <= most // len(spaces):
            assert not [one for one in beyond if one.namespace == namespace]


def removal(pods: list[ClusterPod]) -> tuple[ClusterSizeAnswer, bool]:
    """Return the decision about one empty node, and whether the node is removed."""
    members = replace(group("a", size=1, nodes=("n0",), max_size=3, node_template=template("4", "8Gi")), min_size=0)
    answer = decide_size(situation([members], nodes=[node("n0")], pods=pods, waits=False), settings())
    (only,) = answer.removals
    assert only.is_due or only.reason.startswith("PendingPodsNotLookedAt")
    return answer, only.is_due


@pytest.mark.parametrize("scheduling", [PodScheduling(), APART], ids=["plain", "affinity"])
def test_pods_beyond_the_share_of_their_tenant_are_reported_and_keep_no_node(scheduling: PodScheduling) -> None:
    """In an attack, 301 pods with affinity that fit nowhere, or 2,001 plain ones, kept every node of the cluster."""
    evil = [pod(f"e{number}", f"{number + 100}", namespace="evil", scheduling=scheduling) for number in range(5)]

    answer, goes = removal(evil)

    beyond = 3 if scheduling is APART else 2
    assert {len(alike.pods) for alike in answer.unschedulable if alike.reason == NOT_LOOKED_AT} == {beyond}
    assert (answer.pending_pods, goes) == (5, True)


def test_pods_of_namespaces_without_a_turn_keep_nodes() -> None:
    _, goes = removal([pod("p", f"{number + 100}", namespace=f"n{number}") for number in range(5)])
    assert not goes


@pytest.mark.parametrize(
    ("cpu", "pool", "keeps"),
    [
        pytest.param("3", "", True, id="a new node could hold it"),
        pytest.param("3", "none", False, id="no group has its pool"),
        pytest.param("100", "", False, id="no group is so large"),
    ],
)
def test_young_pods_keep_nodes_only_if_a_group_could_hold_them(cpu: str, pool: str, *, keeps: bool) -> None:
    """In an attack, a pod that fits nowhere is recreated every second."""
    selector = PodScheduling(node_selector=(("pool", pool),) if pool else ())
    young = pod("y", cpu, created=99_999.5, scheduling=selector)
    members = replace(group("a", size=1, nodes=("n0",), max_size=3, node_template=template("4", "8Gi")), min_size=0)
    full = node("n0", taints=("x=y:NoSchedule",))
    answer = decide_size(replace(situation([members], nodes=[full], pods=[young]), now=100_000.0), settings())
    (only,) = answer.removals
    assert only.reason.startswith("YoungPendingPods") is keeps
