"""Features that users of Cluster Autoscaler miss when nodes are added."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.constraints import PodScheduling
from recommender.kinds.cluster_size.expanders.chain import expander_problems
from recommender.kinds.cluster_size.expanders.priorities import PrioritiesError, parse_priorities
from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory, RequestedNodes
from tests.recommender.kinds.cluster_size.builders import controller, pod
from tests.recommender.kinds.cluster_size.options import group, template
from tests.recommender.kinds.cluster_size.scale_up.harnesses import NOW, decided, situation

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod

PENDING = [pod(f"web-{number}", "1", "1Gi", controller="web") for number in range(12)]
ZONES = [template(labels={"topology.kubernetes.io/zone": zone, "eks.amazonaws.com/nodegroup": zone}) for zone in "xy"]


def test_the_answer_says_what_would_be_done_and_why__autoscaler_1377() -> None:
    answer = decided(situation([group("a", max_size=2), group("b")], pods=PENDING), expanders=("most-pods",))
    assert sum(answer.increases.values()) == 3
    assert all(step.detail for step in answer.steps)
    assert set(answer.reasons) == {"a", "b"}


def test_expanders_form_a_chain__autoscaler_2564_4206() -> None:
    assert expander_problems(("priority", "most-pods", "least-waste", "random")) == ()


def test_groups_whose_nodes_do_not_appear_are_skipped_at_once__autoscaler_2075_4142_4438_4731_4958_5038() -> None:
    memory = ClusterSizeMemory(requested={"spot": RequestedNodes(3, NOW - 901)})
    groups = [group("spot", size=3), group("on-demand")]
    its = situation(groups, pods=PENDING, memory=memory, writes_sizes=True)
    answer = decided(its, expanders=("priority",), priorities={20: ("spot",), 10: ("on-demand",)})
    assert answer.increases == {"spot": -3, "on-demand": 3}
    assert "so the size is corrected; it is backing off until" in answer.reasons["spot"]


def test_groups_without_a_priority_are_named_and_the_highest_priority_counts__autoscaler_3026_4098() -> None:
    groups = [group("big"), group("small"), group("other")]
    priorities = {50: ("big",), 10: ("big|small",)}
    answer = decided(situation(groups, pods=PENDING), expanders=("priority",), priorities=priorities)
    assert answer.increases == {"big": 3}
    assert "left out, because they have no priority: other" in answer.steps[0].detail


def test_broken_priorities_do_not_keep_pods_pending__autoscaler_5246() -> None:
    with pytest.raises(PrioritiesError) as caught:
        parse_priorities("10:\n- '*broken'\n", "kube-system/cluster-autoscaler-priority-expander")
    its = situation([group("a"), group("b")], pods=PENDING, priorities_problem=str(caught.value))
    answer = decided(its, expanders=("priority",))
    assert sum(answer.increases.values()) == 3
    assert str(caught.value) in answer.steps[0].detail


def test_groups_of_a_cloud_are_balanced_in_spite_of_its_own_labels__autoscaler_3082_6954() -> None:
    groups = [group(f"g{number}", node_template=each) for number, each in enumerate(ZONES)]
    answer = decided(situation(groups, pods=[*PENDING, *_more(4)]), balance_similar_node_groups=True)
    assert answer.increases == {"g0": 2, "g1": 2}


def test_differences_that_prevent_balancing_are_named__autoscaler_3515() -> None:
    groups = [group("a", node_template=template("4", "16Gi")), group("b", node_template=template("4", "15Gi"))]
    answer = decided(situation(groups, pods=PENDING), balance_similar_node_groups=True)
    assert any("capacity memory is" in step.detail for step in answer.steps)


def test_only_chosen_labels_are_compared_for_balancing__autoscaler_4174() -> None:
    groups = [group(f"g{n}", node_template=template(labels={"tier": "web", "odd": str(n)})) for n in range(2)]
    its = situation(groups, pods=[*PENDING, *_more(4)])
    assert len(decided(its, balance_similar_node_groups=True).increases) == 1
    answer = decided(its, balance_similar_node_groups=True, balancing_labels=("tier",))
    assert answer.increases == {"g0": 2, "g1": 2}


def test_a_group_below_its_minimum_grows_without_pending_pods__autoscaler_5187() -> None:
    assert decided(situation([group("a", size=1, min_size=3)])).increases == {"a": 2}


def test_all_pending_pods_are_decided_together_and_needs_are_not_added_up__kubernetes_67779_43709() -> None:
    its = situation([group("a", max_size=100)], pods=PENDING)
    answer = decided(its)
    again = decided(replace(its, memory=ClusterSizeMemory(sizes={"a": 3})))
    assert answer.increases == again.increases == {"a": 3}


def test_thousands_of_identical_pods_are_evaluated_once__autoscaler_3835_5813_4575() -> None:
    gated = pod("gated", scheduling=PodScheduling(is_gated=True))
    its = situation([group("a", max_size=1000)], pods=[*_more(2000), gated])
    answer = decided(its)
    assert answer.increases == {"a": 500}
    assert len(answer.steps) == 1


def _more(count: int) -> list[ClusterPod]:
    return [pod(f"more-{number}", "1", "1Gi", controller=controller("more")) for number in range(count)]
