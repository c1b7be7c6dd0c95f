"""The real descheduler with the policy that the chart ships moves pods away from hot nodes, and they stay away."""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pytest
import yaml

from tests.e2e.controlplane import programs
from tests.e2e.controlplane.images import DESCHEDULER
from tests.e2e.controlplane.nodes import PATH as NODES
from tests.e2e.controlplane.nodes import NodeSpec, extra_nodes
from tests.e2e.load_aware import loaded_cluster, pod, scheduler_configuration, shipped
from tests.e2e.node_loads import NodeLoad
from tests.e2e.recommenders import RBAC

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

# Bounded waits for the cycles of the descheduler.
pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(240)]

NAME: Final = "by-load"
BESIDE: Final = "by-request"
HOT, COLD = "moved-0", ("moved-1", "moved-2")
POOLS: Final = {"moved": [NodeLoad(0.82), NodeLoad(0.2), NodeLoad(0.2)]}
REPLICAS: Final = 3
CYCLE_SECONDS: Final = 2
_CYCLES: Final = re.compile(r'"Number of evictions/requests" totalEvicted=(\d+)')


@contextmanager
def descheduler(cluster: Cluster, namespace: str, policy: dict[str, Any]) -> Iterator[Document]:
    """Run the descheduler in a pod, as its chart does: it reads CA and token of its service account."""
    programs.find(programs.DESCHEDULER)
    name = f"{namespace}-descheduler"
    metadata = {"name": DESCHEDULER, "namespace": namespace}
    arguments = ["--policy-config-file=/policy/policy.yaml", f"--descheduling-interval={CYCLE_SECONDS}s"]
    container = {
        "name": "main",
        "image": f"{DESCHEDULER}:v0.36.0",
        "args": [*arguments, "--secure-port=0", "--v=3"],
        "volumeMounts": [{"name": "policy", "mountPath": "/policy"}],
        "securityContext": {"readOnlyRootFilesystem": True},
    }
    cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", **metadata}],
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"policy.yaml": yaml.safe_dump(policy)},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {
                "serviceAccountName": DESCHEDULER,
                "containers": [container],
                "volumes": [{"name": "policy", "configMap": {"name": DESCHEDULER}}],
            },
        },
    )
    path = f"/api/v1/namespaces/{namespace}/pods/{DESCHEDULER}"
    try:
        yield cluster.client.get(path)
    finally:
        cluster.client.delete(path)
        cluster.client.delete(f"/apis/{RBAC}/v1/clusterrolebindings/{name}")


def deployment() -> Document:
    template = pod("web", "moved", NAME, "100m")
    labels = template["metadata"]["labels"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


def cordon(cluster: Cluster, *, is_on: bool) -> None:
    """Keep new pods away from the cold nodes, or let them in."""
    for node in COLD:
        cluster.client.merge(f"{NODES}/{node}", {"spec": {"unschedulable": is_on}})


def test_pods_leave_the_hot_node_for_good_and_none_while_the_load_of_a_node_is_unknown(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    policy = shipped("descheduler/policy.yaml")
    (arguments,) = [one["args"] for one in policy["profiles"][0]["pluginConfig"] if one["name"] == "LowNodeUtilization"]
    query = f"/api/v1/query?query={quote(arguments['metricsUtilization']['prometheus']['query'])}"
    # The first refresh decides: five of them take a minute and a half.
    configuration = {
        **shipped("scheduler/scheduling.yaml"),
        "schedulerNames": [NAME],
        "hotspots": {"cpu": "80%", "memory": "90%", "rounds": 1, "clear": 1},
    }
    with ExitStack() as stack:
        loaded = stack.enter_context(loaded_cluster(cluster, tmp_path, "descheduling", POOLS))
        program = stack.enter_context(loaded.running(configuration))
        stack.enter_context(cluster.start_scheduler(scheduler_configuration(program.url, NAME, BESIDE)))
        cordon(cluster, is_on=True)
        cluster.client.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment())
        first = cluster.wait_until_ready(namespace, "web")
        assert {one["spec"]["nodeName"] for one in first} == {HOT}
        cordon(cluster, is_on=False)
        assert program.hot().keys() == {HOT}
        assert program.get(query)[0] == 200

        policy["metricsProviders"][0]["prometheus"]["url"] = program.url
        with extra_nodes(cluster.client, NodeSpec("without-exporter", address="10.97.15.1")):
            cluster.wait_for("the node", lambda: program.get(query)[0] == 503)
            running = stack.enter_context(descheduler(cluster, namespace, policy))
            cluster.wait_for(
                "two cycles", lambda: len(cycles(cluster, running)) >= 2, why_not=lambda: cluster.pod_log(running)
            )
            assert set(cycles(cluster, running)) == {0}
            assert "unable to capture prometheus metrics: server_error: server error: 503" in cluster.pod_log(running)
            # The descheduler does not show the reason.
            assert "there is no cpu avg over 15m of without-exporter" in program.get(query)[1]
            assert names(web(cluster, namespace)) == names(first)

        cluster.wait_for(
            "other pods on other nodes",
            lambda: places(cluster, namespace) <= set(COLD),
            why_not=lambda: cluster.pod_log(running),
        )
        cluster.wait_until_ready(namespace, "web")
        before = len(cycles(cluster, running))
        cluster.wait_for("two more cycles", lambda: len(cycles(cluster, running)) >= before + 2)
        # Each of the first pods was evicted, and none of those that came in their places.
        assert sum(cycles(cluster, running)) == REPLICAS
        assert places(cluster, namespace) <= set(COLD)
        assert program.hot().keys() == {HOT}

        # By requests alone, the node from which pods were evicted is the best one.
        path = f"/api/v1/namespaces/{namespace}/pods"
        cluster.client.create(path, pod("by-request", "moved", BESIDE, "100m"))
        place = cluster.wait_for("its place", lambda: cluster.client.get(f"{path}/by-request")["spec"].get("nodeName"))
        assert place == HOT


def cycles(cluster: Cluster, running: Document) -> list[int]:
    """Return how many pods were evicted in each cycle."""
    return [int(total) for total in _CYCLES.findall(cluster.pod_log(running))]


def web(cluster: Cluster, namespace: str) -> list[Document]:
    return cluster.pods(namespace, "app=web")


def names(pods: list[Document]) -> set[str]:
    return {one["metadata"]["name"] for one in pods}


def places(cluster: Cluster, namespace: str) -> set[str]:
    """Return the nodes of the Deployment's pods; a pod that waits is nowhere."""
    return {one["spec"].get("nodeName", "") for one in web(cluster, namespace)}
