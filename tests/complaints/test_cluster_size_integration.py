"""Features that users of Cluster Autoscaler and Karpenter miss, and that the whole decision offers."""

from __future__ import annotations

from dataclasses import replace

from adapter.foundation.cluster.values.state import Observed
from recommender.decisions.inputs import ConfigMapData, Inputs
from recommender.decisions.memory import Memory
from recommender.kinds.cluster_size.model.answer import answer_of
from recommender.kinds.cluster_size.what_if.apply import cluster_under_assumptions
from recommender.kinds.cluster_size.what_if.model import WhatIf
from tests.recommender.kinds.cluster_size.deciding import decide_sizes, writes_of
from tests.recommender.kinds.cluster_size.test_decide import (
    MINUTE,
    NOW,
    POLICY,
    SETTINGS,
    cluster,
    decided,
    restarted,
    sizes,
)

PRIORITIES = ("kube-system", "cluster-autoscaler-priority-expander")


def test_without_an_output_sizes_are_explained_and_not_written__autoscaler_1377() -> None:
    found = decide_sizes(POLICY, SETTINGS, Inputs(cluster(NOW, pending=2)), Memory(), NOW)

    assert writes_of(found).groups.writes == ()
    assert found.record.message == "grow a from 3 to 5"
    answer = answer_of(found.record)
    assert answer is not None
    assert "2 nodes for 2 pods" in answer.groups[0].reason


def test_the_removal_of_a_node_is_simulated_and_explained__karpenter_aws_3732__autoscaler_5187() -> None:
    without = cluster_under_assumptions(cluster(NOW), WhatIf(without_nodes=("n1",))).cluster

    found = decided(without)

    assert sizes(found) == (3, 3)
    answer = answer_of(found.record)
    assert answer is not None
    [group] = answer.groups
    assert group.current == 2
    assert "1 node for 1 pod" in group.reason


def test_timers_and_sizes_survive_a_restart__autoscaler_3506() -> None:
    before = decided(cluster(NOW, running=2)).memory

    after = restarted(before)

    assert before.own is not None
    assert after == replace(before, own=before.own.stored)
    decision = None
    for minute in range(1, 12):
        now = NOW + minute * MINUTE
        decision = decided(cluster(now, running=2), now, after if decision is None else decision.memory)
    assert decision is not None
    assert sizes(decision) == (3, 2)


def test_broken_priorities_are_named_and_block_nothing__autoscaler_5246() -> None:
    settings = replace(SETTINGS, expanders=("priority", "least-waste"), priorities_config_map=PRIORITIES)
    broken: Observed[ConfigMapData | None] = Observed(ConfigMapData({"priorities": "10: [(]"}, "1"), NOW)
    inputs = Inputs(cluster(NOW, pending=2), config_maps={PRIORITIES: broken})

    found = decide_sizes(POLICY, settings, inputs, Memory(), NOW, waits=True)

    assert sizes(found) == (5, 5)
    assert "priorities are not used: " in found.record.message
    assert "cluster-autoscaler-priority-expander" in found.record.message
