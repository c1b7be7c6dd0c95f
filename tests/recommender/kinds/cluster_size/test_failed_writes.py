"""The next decision after a size could not be written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.cluster.values.storage import Storage
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.kinds.cluster_size.model.size_settings import ClusterApiGroups, ClusterSizeSettings, NodeGroupSources
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.deciding import decide_sizes, size_memory, writes_of
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import (
    BOUNDS,
    CAPACITY,
    cluster,
    machines_of,
    scalable,
    state,
)
from tests.recommender.kinds.cluster_size.test_decide import NOW, WEB

if TYPE_CHECKING:
    from recommender.decisions.loop import Decision

POLICY = RecommendationPolicy("workers", "clusterSize", outputs=frozenset({Output.SCALE}))
SETTINGS = ClusterSizeSettings(NodeGroupSources(cluster_api=ClusterApiGroups(("capi",))))
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
    facts = state(*objects)
    recent = {
        kind: replace(found, time=now) if isinstance(found, Observed) else found
        for kind, found in facts.objects.items()
    }
    return replace(
        facts,
        objects=recent,
        nodes=Observed(tuple(nodes), now),
        pods=Observed(tuple(pods), now),
        workloads=Observed((WEB,), now),
        disruption_budgets=Observed((), now),
        namespace_labels=Observed({"shop": {}}, now),
        storage=Storage(Observed({}, now), Observed({}, now), Observed({}, now), Observed({}, now)),
    )


def decided(now: float, memory: Memory, *outcomes: ScaleOutcome) -> Decision:
    writes = {each.write.target: each for each in outcomes}
    inputs = Inputs(two_groups(now))
    return decide_sizes(POLICY, SETTINGS, inputs, memory, now, waits=True, writes_sizes=True, writes=writes)


@pytest.mark.parametrize(
    ("result", "is_tried_elsewhere"),
    [(ScaleResult.ERROR, True), (ScaleResult.FENCED, False), (ScaleResult.REFUSED, False)],
)
def test_after_a_failed_write_the_next_group_is_tried(result: ScaleResult, *, is_tried_elsewhere: bool) -> None:
    first = decided(NOW, Memory())
    [write] = writes_of(first).groups.writes
    assert (write.replicas, write.known_size) == (2, 1)

    second = decided(NOW + 10.0, first.memory, ScaleOutcome(write, result, message="403: no rights"))

    [other] = writes_of(second).groups.writes
    assert (other.target != write.target) is is_tried_elsewhere
    assert (size_memory(second).requested, size_memory(second).last_scale_up) == ({}, None)


def test_after_a_successful_write_no_other_group_is_scaled_up() -> None:
    first = decided(NOW, Memory())
    [write] = writes_of(first).groups.writes

    second = decided(NOW + 10.0, first.memory, ScaleOutcome(write, ScaleResult.OK))

    assert [each.target for each in writes_of(second).groups.writes] in ([], [write.target])
    assert size_memory(second).last_scale_up == NOW
