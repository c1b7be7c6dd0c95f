"""With the policy that the chart ships, the real descheduler moves pods away from hot nodes, and they stay away."""

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
from tests.e2e.nodes.load_aware import loaded_cluster, pod, scheduler_configuration, shipped
from tests.e2e.nodes.node_loads import NodeLoad
from tests.e2e.support.recommenders import RBAC

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.nodes.load_aware import NodesProgram

# Bounded waits for the cycles of the descheduler.
pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(240)]

NAME: Final = "by-load"
BESIDE: Final = "by-request"
HOT, COLD = "moved-0", ("moved-1", "moved-2")
POOLS: Final = {"moved": [NodeLoad(0.82), NodeLoad(0.2), NodeLoad(0.2)]}
BY_MEMORY: Final = {"moved": [NodeLoad(0.2, 0.95), NodeLoad(0.2), NodeLoad(0.2)]}
REPLICAS: Final = 3
CYCLE_SECONDS: Final = 2
TOKEN: Final = "of-the-chart"
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
    """Keep new pods off the cold nodes, or let them in."""
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
        program = stack.enter_context(loaded.running(configuration, token=TOKEN))
        stack.enter_context(cluster.start_scheduler(scheduler_configuration(program.url, NAME, BESIDE)))
        cordon(cluster, is_on=True)
        cluster.client.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment())
        first = cluster.wait_until_ready(namespace, "web")
        assert {one["spec"]["nodeName"] for one in first} == {HOT}
        cordon(cluster, is_on=False)
        assert program.hot().keys() == {HOT}
        assert program.get(query)[0] == 200

        directed(cluster, namespace, program, policy)
        with extra_nodes(cluster.client, NodeSpec("without-exporter", address="10.97.15.1")):
            scores = "/scores?policy=target-load-packing"
            cluster.wait_for("the node", lambda: "without-exporter" in program.get(scores)[1])
            # The loads of the others are there, and nobody has seen that of the new one.
            status, answer = program.get(query)
            assert (status, "without-exporter" in answer, HOT in answer) == (200, False, True)
            running = stack.enter_context(descheduler(cluster, namespace, policy))
            cluster.wait_for(
                "two cycles", lambda: len(cycles(cluster, running)) >= 2, why_not=lambda: cluster.pod_log(running)
            )
            assert set(cycles(cluster, running)) == {0}
            assert "unable to find metric entry for without-exporter" in cluster.pod_log(running)
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


def test_pods_leave_a_node_that_is_hot_by_memory_alone(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    configuration = {**shipped("scheduler/scheduling.yaml"), "schedulerNames": [NAME]}
    with ExitStack() as stack:
        loaded = stack.enter_context(loaded_cluster(cluster, tmp_path, "by-memory", BY_MEMORY))
        program = stack.enter_context(loaded.running(configuration, token=TOKEN))
        # Without the extender, which would keep new pods away from the hot node: here it is cordoned.
        stack.enter_context(cluster.start_scheduler({"profiles": [{"schedulerName": NAME}]}))
        cordon(cluster, is_on=True)
        cluster.client.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment())
        cluster.wait_until_ready(namespace, "web")
        assert places(cluster, namespace) == {HOT}
        cordon(cluster, is_on=False)
        cluster.client.merge(f"{NODES}/{HOT}", {"spec": {"unschedulable": True}})
        running = stack.enter_context(
            descheduler(
                cluster, namespace, directed(cluster, namespace, program, shipped("descheduler/policy-any.yaml"))
            )
        )
        cluster.wait_for(
            "pods on other nodes",
            lambda: places(cluster, namespace) <= set(COLD),
            why_not=lambda: cluster.pod_log(running),
        )


def test_replicas_that_share_a_hot_node_are_named_and_the_policy_spreads_them(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    configuration = {
        **shipped("scheduler/scheduling.yaml"),
        "schedulerNames": [NAME],
        "hotspots": {"cpu": "80%", "memory": "90%", "rounds": 1, "clear": 1},
    }
    policy = shipped("descheduler/policy-replicas.yaml")
    (arguments,) = [one["args"] for one in policy["profiles"][0]["pluginConfig"] if one["name"] == "RemoveDuplicates"]
    arguments["namespaces"]["include"] = [namespace]
    with ExitStack() as stack:
        loaded = stack.enter_context(loaded_cluster(cluster, tmp_path, "replicas", POOLS))
        program = stack.enter_context(loaded.running(configuration, token=TOKEN))
        stack.enter_context(cluster.start_scheduler({"profiles": [{"schedulerName": NAME}]}))
        cordon(cluster, is_on=True)
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        cluster.client.create(path, deployment())
        cluster.wait_until_ready(namespace, "web")
        cordon(cluster, is_on=False)
        crowded = cluster.wait_for("the replicas", lambda: replicas_on_hot_nodes(program, namespace))
        assert (crowded[0]["on_hot_nodes"], crowded[0]["replicas"], crowded[0]["nodes"]) == (REPLICAS, REPLICAS, [HOT])

        running = stack.enter_context(descheduler(cluster, namespace, policy))
        cluster.wait_for(
            "a replica on each node",
            lambda: places(cluster, namespace) == {HOT, *COLD},
            why_not=lambda: cluster.pod_log(running),
        )
        cluster.wait_for("no replicas named", lambda: not replicas_on_hot_nodes(program, namespace))

        # The affinity as it is named is one that the API server takes.
        template = {"spec": {"template": {"spec": {"affinity": crowded[0]["affinity"]}}}}
        assert cluster.client.merge(f"{path}/web", template)["spec"]["template"]["spec"]["affinity"]


def replicas_on_hot_nodes(program: NodesProgram, namespace: str) -> list[Document]:
    """Return the replicas of a namespace that `/hotspots` lists."""
    return [one for one in program.document("/hotspots")["replicas"] if one["namespace"] == namespace]


def directed(cluster: Cluster, namespace: str, program: NodesProgram, policy: dict[str, Any]) -> dict[str, Any]:
    """Return a policy that queries this program with its token, which is in a Secret of the namespace."""
    prometheus = policy["metricsProviders"][0]["prometheus"]
    prometheus["url"] = program.url
    reference = prometheus["authToken"]["secretReference"] = {"namespace": namespace, "name": "nodes-token"}
    secret = {"metadata": {"name": reference["name"]}, "stringData": {"prometheusAuthToken": TOKEN}}
    cluster.client.create(f"/api/v1/namespaces/{namespace}/secrets", secret)
    return policy


def cycles(cluster: Cluster, running: Document) -> list[int]:
    """Return how many pods were evicted in each cycle."""
    return [int(total) for total in _CYCLES.findall(cluster.pod_log(running))]


def web(cluster: Cluster, namespace: str) -> list[Document]:
    return cluster.pods(namespace, "app=web")


def names(pods: list[Document]) -> set[str]:
    return {one["metadata"]["name"] for one in pods}


def places(cluster: Cluster, namespace: str) -> set[str]:
    """Return the nodes of the Deployment's pods; pods that wait have none."""
    return {one["spec"].get("nodeName", "") for one in web(cluster, namespace)}
