"""A node whose metrics are lost scores no better than with the metrics that it had."""

from __future__ import annotations

import numpy as np
import pytest

from adapter.foundation.cluster.values.placed_pods import pods_by_place
from adapter.nodes.model.columns import PendingPod
from adapter.nodes.model.scheduling_settings import DEFAULT_ARGS, PolicyName, PolicySettings
from adapter.nodes.queries.refresh_results import RefreshResult
from adapter.nodes.scores.blend import fill_with_median
from adapter.nodes.scores.table import score_nodes
from adapter.nodes.snapshot.cluster_facts import NodeFacts
from tests.adapter.nodes.placement.objects import a_node, a_pod, resources
from tests.adapter.nodes.snapshot.scripted_keeper import Script, steady
from tests.support.sample_grids import END, NAN

NODES = ("a", "b", "c")


@pytest.mark.parametrize("lost_seconds", [120, 360])
@pytest.mark.parametrize("requested", ["0", "20m", "2"], ids=["no requests", "small requests", "requests"])
@pytest.mark.parametrize(
    "name",
    [PolicyName.TARGET_LOAD_PACKING, PolicyName.LOAD_VARIATION_RISK_BALANCING, PolicyName.LOW_RISK_OVERCOMMITMENT],
)
def test_a_hot_node_that_loses_its_metrics_does_not_attract_pods(
    name: PolicyName, requested: str, lost_seconds: int
) -> None:
    """An exporter on a node without free CPU answers too late, so the hottest nodes lose their metrics first."""
    script, policy = Script(), PolicySettings(name, 1, DEFAULT_ARGS[name])
    pods = [a_pod(f"on-{node}", node, resources(requested if node == "a" else "1", "1Gi", limit="4")) for node in NODES]
    script.facts = NodeFacts(tuple(map(a_node, NODES)), pods=pods_by_place(pods))
    keeper = script.keeper()

    def score_of_hot_node(seconds: int, load: float) -> float:
        script.now = END + float(seconds)
        script.result = RefreshResult(steady(load, 0.2, 0.3, end=END + seconds, nodes=NODES))
        keeper.refresh()
        snapshot = keeper.published.snapshot
        values = score_nodes(policy, PendingPod(resources=resources("100m", "64Mi")), snapshot, np.arange(3)).values
        return float(fill_with_median(values)[0])

    measured = score_of_hot_node(0, 0.95)
    assert score_of_hot_node(15, NAN) <= measured
    assert score_of_hot_node(15 + lost_seconds, NAN) <= measured
