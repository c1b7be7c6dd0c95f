from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.foundation.cluster.values.workloads import DisruptionBudget
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.model.groups import NodeTemplate
from recommender.kinds.cluster_size.model.memory import BackOff, ClusterSizeMemory
from recommender.kinds.cluster_size.scale_down.annotations import SAFE_TO_EVICT
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.scale_down.harness import NOW, Harness, due, group

BIG = NodeTemplate(node("big-template", "8", "32Gi"))
SMALL = NodeTemplate(node("small-template", "4", "16Gi"))


def fleet(count: int, cpu: str, each: int) -> Harness:
    """Return nodes of 8 cores, none of whose pods fits on another node."""
    names = [f"n{number}" for number in range(count)]
    return Harness(
        nodes=tuple(node(name, "8", "32Gi") for name in names),
        pods=tuple(
            pod(f"p-{name}-{number}", cpu, "1Gi", node=name, controller="web")
            for name in names
            for number in range(each)
        ),
        groups=(group("big", names, price=0.4, template=BIG), group("small", [], price=0.15, template=SMALL)),
    )


def test_replacing_a_node_that_is_too_large_by_a_cheaper_one_is_advised() -> None:
    harness = fleet(1, "3", 1)
    decision = harness.decide()
    assert [(one.kind, one.nodes, one.saved_per_hour) for one in decision.advice] == [("replace", ("n0",), 0.25)]
    assert "1 new node of small instead of n0" in decision.advice[0].detail


def test_several_half_empty_nodes_are_consolidated_together() -> None:
    """A pod of 4.5 cores fills half of a node of 8, which holds no second one; one node of 18 cores holds four."""
    harness = fleet(4, "4500m", 1)
    cheap = group("huge", [], price=0.5, template=NodeTemplate(node("huge-template", "18", "64Gi")))
    decision = replace(harness, groups=(*harness.groups, cheap)).decide()
    assert due(decision) == []
    assert [(one.kind, one.nodes) for one in decision.advice] == [("consolidate", ("n0", "n1", "n2", "n3"))]
    assert decision.advice[0].saved_per_hour == 1.6 - 0.5


def test_a_replacement_of_equal_cost_is_not_advised() -> None:
    harness = fleet(2, "5", 1)
    assert harness.decide().advice == ()


@pytest.mark.parametrize(
    ("paid", "huge"),
    [
        pytest.param((0.1, 0.2), 0.3, id="a-sum-that-no-float-holds"),
        pytest.param((0.0, 0.0), 0.0, id="nodes-that-cost-nothing"),
    ],
)
def test_nodes_that_save_nothing_are_not_advised(paid: tuple[float, float], huge: float) -> None:
    harness = fleet(2, "4500m", 1)
    groups = tuple(
        group(f"g{number}", [f"n{number}"], most=1, price=price, template=BIG) for number, price in enumerate(paid)
    )
    huge_group = group("huge", [], price=huge, template=NodeTemplate(node("huge-template", "18", "64Gi")))
    assert replace(harness, groups=(*groups, huge_group)).decide().advice == ()


def test_a_pod_that_may_always_be_evicted_does_not_prevent_advice() -> None:
    harness = fleet(1, "3", 1)
    safe = pod("p", "3", "1Gi", node="n0", controller="web", annotations={SAFE_TO_EVICT: "true"}, labels={"app": "web"})
    budget = DisruptionBudget("default", "web", parse_selector("app=web"), 0)
    assert [one.kind for one in replace(harness, pods=(safe,), budgets=(budget,)).decide().advice] == ["replace"]


def test_evictions_from_nodes_that_are_removed_now_count_for_advice() -> None:
    harness = fleet(1, "3", 1)
    going = pod("q", "3", "1Gi", node="n9", controller="web", labels={"app": "web"})
    stays = pod("p", "3", "20Gi", node="n0", controller="web", labels={"app": "web"})
    third = node("n9", "20", "64Gi"), node("n8", "8", "32Gi")
    spare = group("spare", ["n9"], price=9.0, template=NodeTemplate(third[0]))
    fixed = group("fixed", ["n8"], least=1, price=0.4, template=BIG)
    medium = group("medium", [], price=0.2, template=NodeTemplate(node("medium-template", "6", "24Gi")))
    blocked = pod("r", "5", "1Gi", node="n8", controller="web")
    harness = replace(
        harness,
        nodes=(*harness.nodes, *third),
        pods=(going, stays, blocked),
        groups=(*harness.groups, spare, fixed, medium),
    )
    for allowed, advised in ((2, ["replace"]), (1, [])):
        budget = DisruptionBudget("default", "web", parse_selector("app=web"), allowed)
        decision = replace(harness, budgets=(budget,)).decide()
        assert (due(decision), [one.kind for one in decision.advice]) == (["n9"], advised)


def test_without_prices_a_smaller_node_is_advised_without_a_saving() -> None:
    harness = fleet(1, "3", 1)
    groups = tuple(replace(one, price=None) for one in harness.groups)
    assert [(one.kind, one.saved_per_hour) for one in replace(harness, groups=groups).decide().advice] == [
        ("replace", None)
    ]


def test_advice_respects_minimum_and_maximum_sizes() -> None:
    harness = fleet(1, "3", 1)
    big, small = harness.groups
    assert replace(harness, groups=(replace(big, min_size=1), small)).decide().advice == ()
    assert replace(harness, groups=(big, replace(small, max_size=0))).decide().advice == ()


def test_a_pod_that_keeps_its_node_prevents_advice() -> None:
    harness = fleet(1, "3", 1)
    assert replace(harness, pods=(pod("bare", "3", node="n0"),)).decide().advice == ()
    assert replace(harness, budgets=None).decide().advice == ()


def test_a_group_that_backs_off_is_not_advised_until_the_back_off_ends() -> None:
    harness = replace(fleet(1, "3", 1), waits=True)
    for until, advised in ((NOW + 1, []), (NOW, ["replace"])):
        back_off = BackOff(until, 300.0, NOW - 299, "1 node did not join in time")
        memory = ClusterSizeMemory(back_offs={"small": back_off})
        assert [one.kind for one in replace(harness, memory=memory).decide().advice] == advised
