"""Files state the workloads of a cluster, and the pods that each of them would make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.constraints import PodScheduling
from adapter.foundation.cluster.values.state import ClusterState, ControllerReference, LeftOut, Observed
from tests.adapter.foundation.cluster.scheduling.objects import api_object, workload
from tests.adapter.foundation.cluster.scheduling.states import state

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from adapter.foundation.cluster.values.workloads import WorkloadFacts
    from tests.support.cluster_objects import Json


def workloads_of(state: ClusterState) -> Mapping[tuple[str, str], WorkloadFacts]:
    assert isinstance(state.workloads, Observed), state.workloads
    return {(one.kind, one.name): one for one in state.workloads.value}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"])
def test_the_size_and_template_of_a_workload_are_read(kind: str, tmp_path: Path) -> None:
    found = workloads_of(state(tmp_path, workload(kind, "web", nodeSelector={"a": "b"})))[kind, "web"]
    assert (found.namespace, found.uid, found.replicas, found.problem) == ("shop", "uid-web", 2, "")
    template = found.template
    assert template is not None
    assert template.facts is not None
    api_version = "v1" if kind == "ReplicationController" else "apps/v1"
    assert template.controller == ControllerReference(api_version, kind, "web", "uid-web")
    assert (template.namespace, template.name, template.node, template.labels) == ("shop", "", "", {"app": "web"})
    assert template.resources.requests == {"cpu": 500}
    assert template.facts.scheduling == PodScheduling(node_selector=(("a", "b"),))


@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        ({"limits": {"cpu": "2", "nvidia.com/gpu": "1"}}, {"cpu": 2000, "nvidia.com/gpu": 1}),
        ({"limits": {"cpu": "2", "memory": "1Ki"}, "requests": {"cpu": "1"}}, {"cpu": 1000, "memory": 1024}),
        ({"limits": {"cpu": "2"}, "requests": {"cpu": "0"}}, {"cpu": 0}),
    ],
)
def test_the_requests_of_a_template_default_to_its_limits(
    resources: Json, requests: Mapping[str, int], tmp_path: Path
) -> None:
    content = workload("Deployment", "web", containers=[{"name": "c", "resources": resources}])
    template = workloads_of(state(tmp_path, content))["Deployment", "web"].template
    assert template is not None
    assert template.resources.requests == requests


def test_the_size_of_a_job_is_its_parallelism_and_a_daemon_set_has_none(tmp_path: Path) -> None:
    job = workload("Job", "sum")
    job["spec"]["parallelism"] = 4
    found = workloads_of(state(tmp_path, job, workload("Job", "one"), workload("DaemonSet", "agent")))
    sizes = {name: one.replicas for (_, name), one in found.items()}
    assert sizes == {"sum": 4, "one": 1, "agent": None}


def test_pods_of_a_daemon_set_have_the_tolerations_that_its_controller_adds(tmp_path: Path) -> None:
    found = workloads_of(state(tmp_path, workload("DaemonSet", "agent", hostNetwork=True)))["DaemonSet", "agent"]
    assert found.template is not None
    assert found.template.facts is not None
    keys = {one.key.rpartition("/")[2] for one in found.template.facts.scheduling.tolerations}
    assert keys == {
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
        "network-unavailable",
    }


def test_the_template_of_a_deployment_is_that_of_its_newest_replica_set(tmp_path: Path) -> None:
    def replica_set(revision: int) -> Json:
        content = workload("ReplicaSet", f"web-{revision}", labels={"hash": str(revision)}, owner=("Deployment", "web"))
        content["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": str(revision)}
        return content

    found = workloads_of(state(tmp_path, replica_set(9), workload("Deployment", "web"), replica_set(10)))
    template = found["Deployment", "web"].template
    assert template is not None
    assert template.labels == {"hash": "10"}
    assert template.controller == ControllerReference("apps/v1", "ReplicaSet", "web-10", "uid-web-10")


def test_priorities_of_templates_come_from_priority_classes(tmp_path: Path) -> None:
    classes = [
        api_object("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000),
        api_object("scheduling.k8s.io/v1", "PriorityClass", "usual", value=5, globalDefault=True),
    ]
    found = state(
        tmp_path,
        *classes,
        workload("Deployment", "a", priorityClassName="high"),
        workload("Deployment", "b", priorityClassName="system-node-critical"),
        workload("Deployment", "c"),
        workload("Deployment", "d", priorityClassName="high", priority=7),
        workload("Deployment", "e", priorityClassName="gone"),
    )
    priorities = [one.template.priority for one in workloads_of(found).values() if one.template]
    assert priorities == [1000, 2_000_001_000, 5, 7, 5]
    assert "workloads name the PriorityClass gone, which is not known (1)" in found.placement_problems[-1]


def test_a_template_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    found = state(tmp_path, workload("Deployment", "web", tolerations=[{"operator": "Like"}]))
    one = workloads_of(found)["Deployment", "web"]
    assert one.template is None
    assert "Deployment shop/web: spec.template: spec.tolerations[0]" in one.problem
    assert found.left_out == (LeftOut("Deployment", "shop", "web", one.problem),)
