"""Node groups and their reserve: capacity before it is needed, and sizes that two programs write."""

from __future__ import annotations

from datetime import datetime

from adapter.foundation.cluster.values.workloads import WorkloadFacts
from adapter.foundation.objects.selectors import parse_selector
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.future.headroom import headroom_at, headroom_pods
from recommender.kinds.cluster_size.future.predicted_pods import forecast_pods
from recommender.kinds.cluster_size.future.prediction_limits import ForecastBounds
from recommender.kinds.cluster_size.future.predictions import PredictedReplicas
from recommender.kinds.cluster_size.model.size_settings import (
    ClusterApiGroups,
    HeadroomSchedule,
    NodeGroupSources,
    StaticGroup,
)
from recommender.kinds.cluster_size.node_groups.discover import node_groups
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import cluster, machines_of, scalable, state


def test_a_reserve_is_a_share_of_what_is_requested_without_balloon_pods__autoscaler_148_735_3213_4384_2369() -> None:
    reserve = headroom_pods(0.1, tuple(pod(f"p{number}", "1", "2Gi", node="n1") for number in range(30)))
    assert sum(one.resources.requests["cpu"] for one in reserve) == 3000
    assert len(reserve) == 3, "chunks of a typical pod, so that they need no node of their own"


def test_a_reserve_may_be_larger_at_certain_times__karpenter_749() -> None:
    schedule = HeadroomSchedule("0 7 * * mon-fri", "Europe/Berlin", 7200.0, 0.3)
    at = [datetime.fromisoformat(text).timestamp() for text in ("2026-11-23T05:59:59Z", "2026-11-23T06:00:00Z")]
    assert [headroom_at(0.1, (schedule,), moment).ratio for moment in at] == [0.1, 0.3]


def test_nodes_are_sized_for_pods_that_are_not_pending_yet__autoscaler_31_6230() -> None:
    web = WorkloadFacts("Deployment", "default", "web", "uid", 2, pod("", "500m"))
    target = TargetReference("apps/v1", "Deployment", "default", "web")
    running = tuple(
        pod(f"web-5d-{number}", node="n1", controller="web-5d", labels={"pod-template-hash": "5d"})
        for number in range(2)
    )
    assert (
        len(forecast_pods([PredictedReplicas("web", target, 6, max_growth=3.0)], [web], running, ForecastBounds()).pods)
        == 4
    )


def test_a_size_that_the_topology_controller_writes_back_is_not_written__autoscaler_7382() -> None:
    topology = {"workers": {"machineDeployments": [{"name": "md-0", "class": "worker", "replicas": 3}]}}
    owned, machines = machines_of("workers", "n1")
    group = scalable(labels={"topology.cluster.x-k8s.io/deployment-name": "md-0"})
    harness = state(group, owned, *machines, cluster(topology=topology), nodes=(node("n1"),))
    (found,) = node_groups(NodeGroupSources(cluster_api=ClusterApiGroups(("capi",))), harness, 0.0).groups
    assert found.paused == (
        "its Cluster prod states spec.topology.workers.machineDeployments[md-0].replicas, which the topology "
        "controller writes back: remove replicas there"
    )


def test_labels_and_taints_of_a_template_hold_for_groups_with_nodes_too__autoscaler_2243() -> None:
    stated = StaticGroup(
        "a",
        0,
        5,
        parse_selector("pool=a"),
        capacity={"cpu": 4000, "memory": 1 << 34},
        labels={"disk": "ssd"},
        taints=(("gpu", "", "NoSchedule"),),
    )
    harness = state(nodes=(node("n1", labels={"pool": "a"}),))
    (found,) = node_groups(NodeGroupSources(static=(stated,)), harness, 0.0).groups
    assert found.template is not None
    assert found.template.node.labels["disk"] == "ssd"
    assert [taint.key for taint in found.template.node.taints] == ["gpu"]
