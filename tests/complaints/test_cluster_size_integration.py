"""What users of Cluster Autoscaler and Karpenter miss, as far as the whole decision answers it."""

from __future__ import annotations

from dataclasses import replace

from adapter.cluster.state import Observed
from recommender.cluster_size.what_if.apply import assumed
from recommender.cluster_size.what_if.model import WhatIf
from recommender.decisions.inputs import ConfigMapData, Inputs
from recommender.decisions.memory import Memory
from recommender.running.sizing.decide import SizeInputs, SizeQuestion, decide_cluster_size
from recommender.running.sizing.outcome import SizeDecision
from tests.recommender.running.sizing.test_decide import (
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


def test_what_would_be_done_is_said_and_nothing_is_done__autoscaler_1377() -> None:
    question = SizeQuestion(POLICY, SETTINGS, waits=False, writes=False)

    found = decide_cluster_size(question, SizeInputs(Inputs(cluster(NOW, pending=2))), Memory(), NOW)

    assert isinstance(found, SizeDecision)
    assert found.groups.wishes == ()
    assert found.record.message == "grow a from 3 to 5"
    assert found.record.size is not None
    assert "2 nodes for 2 pods" in found.record.size.groups[0].reason


def test_a_node_is_taken_away_in_thought_and_what_follows_is_explained__karpenter_aws_3732__autoscaler_5187() -> None:
    without = assumed(cluster(NOW), WhatIf(without_nodes=("n1",))).cluster

    found = decided(without)

    assert sizes(found) == (3, 3)
    assert found.record.size is not None
    [group] = found.record.size.groups
    assert group.current == 2
    assert "1 node for 1 pod" in group.reason


def test_timers_and_sizes_are_those_of_before_the_restart__autoscaler_3506() -> None:
    before = decided(cluster(NOW, running=2)).memory

    after = restarted(before)

    assert after == replace(
        before, cluster_size=replace(before.cluster_size, unremovable_until={}) if before.cluster_size else None
    )
    assert sizes(decided(cluster(NOW + 11 * MINUTE, running=2), NOW + 11 * MINUTE, after)) == (3, 2)


def test_broken_priorities_are_named_and_block_nothing__autoscaler_5246() -> None:
    settings = replace(SETTINGS, expanders=("priority", "least-waste"), priorities_config_map=PRIORITIES)
    broken: Observed[ConfigMapData | None] = Observed(ConfigMapData({"priorities": "10: [(]"}, "1"), NOW)
    inputs = SizeInputs(Inputs(cluster(NOW, pending=2), config_maps={PRIORITIES: broken}))

    found = decide_cluster_size(SizeQuestion(POLICY, settings, waits=True, writes=False), inputs, Memory(), NOW)

    assert sizes(found) == (5, 5)
    assert "priorities are not used: " in found.record.message
    assert "cluster-autoscaler-priority-expander" in found.record.message
