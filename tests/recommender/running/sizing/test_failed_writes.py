"""A size that cannot be written: what the next decision makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.cluster.scheduling.storage import Storage
from adapter.cluster.state import ClusterState, Observed
from recommender.cluster_size.model.settings import ClusterApiGroups, ClusterSizeSettings, NodeGroupSources
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import Memory
from recommender.decisions.settings import Output, RecommendationPolicy
from recommender.outputs.results import ScaleResult
from recommender.outputs.scale import ScaleOutcome
from recommender.running.sizing.decide import SizeInputs, SizeQuestion, decide_cluster_size
from recommender.running.sizing.outcome import SizeDecision
from tests.cluster_size.builders import node, pod
from tests.cluster_size.node_groups.cluster_api_objects import BOUNDS, CAPACITY, cluster, machines_of, scalable, state
from tests.recommender.running.sizing.test_decide import NOW, WEB

POLICY = RecommendationPolicy("workers", "clusterSize", outputs=frozenset({Output.SCALE}))
SETTINGS = ClusterSizeSettings(NodeGroupSources(cluster_api=ClusterApiGroups()))
SIZE = {f"{CAPACITY}cpu": "4", f"{CAPACITY}memory": "16Gi", f"{CAPACITY}maxPods": "110"}


def two_groups(now: float) -> ClusterState:
    """Return two groups of one node each, and a pod that needs another node."""
    objects = [cluster()]
    nodes = []
    for name in ("a", "b"):
        nodes.append(node(f"n-{name}", labels={"pool": name}, created=1.0))
        machine_set, machines = machines_of(name, f"n-{name}")
        objects += [scalable(name, 1, annotations=BOUNDS | SIZE, status={"readyReplicas": 1}), machine_set, *machines]
    pods = [
        pod(f"web-{one.name}", "4", "1Gi", namespace="shop", node=one.name, controller="web", created=2.0)
        for one in nodes
    ]
    pods.append(pod("wait", "4", "1Gi", namespace="shop", controller="web", created=2.0))
    return replace(
        state(*objects),
        nodes=Observed(tuple(nodes), now),
        pods=Observed(tuple(pods), now),
        workloads=Observed((WEB,), now),
        disruption_budgets=Observed((), now),
        namespace_labels=Observed({"shop": {}}, now),
        storage=Storage(Observed({}, now), Observed({}, now), Observed({}, now), Observed({}, now)),
    )


def decided(now: float, memory: Memory, *outcomes: ScaleOutcome) -> SizeDecision:
    inputs = SizeInputs(Inputs(two_groups(now)), writes={each.wish.target: each for each in outcomes})
    found = decide_cluster_size(SizeQuestion(POLICY, SETTINGS, waits=True, writes=True), inputs, memory, now)
    assert isinstance(found, SizeDecision)
    return found


@pytest.mark.parametrize(
    ("result", "is_tried_elsewhere"),
    [(ScaleResult.ERROR, True), (ScaleResult.FENCED, False), (ScaleResult.REFUSED, False)],
)
def test_after_a_write_that_failed_the_next_group_is_tried(result: ScaleResult, *, is_tried_elsewhere: bool) -> None:
    first = decided(NOW, Memory())
    [wish] = first.groups.wishes
    assert (wish.replicas, wish.known_size) == (2, 1)

    second = decided(NOW + 10.0, first.memory, ScaleOutcome(wish, result, message="403: no rights"))

    [other] = second.groups.wishes
    assert (other.target != wish.target) is is_tried_elsewhere
    assert second.memory.cluster_size is not None
    assert (second.memory.cluster_size.requested, second.memory.cluster_size.last_scale_up) == ({}, None)


def test_after_a_write_that_succeeded_nothing_is_asked_of_other_groups() -> None:
    first = decided(NOW, Memory())
    [wish] = first.groups.wishes

    second = decided(NOW + 10.0, first.memory, ScaleOutcome(wish, ScaleResult.OK))

    assert [each.target for each in second.groups.wishes] in ([], [wish.target])
    assert second.memory.cluster_size is not None
    assert second.memory.cluster_size.last_scale_up == NOW
