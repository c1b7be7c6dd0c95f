"""The basis for tests of scheduling: nodes of their own, pods that wait for their scheduler, and the real scheduler."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

from demo.machine.processes import ProcessFailedError
from tests.e2e.controlplane.nodes import PATH as NODES
from tests.e2e.controlplane.nodes import NodeSpec, extra_nodes

if TYPE_CHECKING:
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

SCHEDULER: Final = "picky"
POOL: Final = "e2e.tidewatch.io/pool"
CONFIGURATION: Final[dict[str, Any]] = {
    "profiles": [
        {
            "schedulerName": SCHEDULER,
            "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}},
                }
            ],
        }
    ]
}
"""A configuration that fills one node before it begins with the next, whereas the default spreads pods."""


def deployment(namespace: str, name: str, replicas: int, **pod: object) -> Document:
    labels = {"app": name}
    container = {"name": "main", "image": "shop/web:1", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], **pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def places(cluster: Cluster, namespace: str) -> list[str | None]:
    """Return the node of each existing pod, in order; None for one that waits."""
    found = [pod["spec"].get("nodeName") for pod in cluster.pods(namespace)]
    return sorted(found, key=str)


def is_ready(pod: Document) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions") or [])


def test_pods_wait_for_the_scheduler_that_they_name_and_are_placed_as_it_is_configured(
    cluster: Cluster, namespace: str
) -> None:
    pool = {POOL: namespace}
    nodes = [NodeSpec(f"{namespace}-{number}", {"cpu": "3", "memory": "8Gi", "pods": "9"}, {}, pool) for number in "ab"]
    small, other = (node.name for node in nodes)
    with ExitStack() as stack:
        stack.enter_context(extra_nodes(cluster.client, *nodes))
        cluster.apply(deployment(namespace, "web", 3, schedulerName=SCHEDULER, nodeSelector=pool))
        cluster.wait_for("the pods", lambda: len(cluster.pods(namespace)) == 3)
        # The stand-in takes pods in their order, so it has seen those of `web` by then.
        cluster.apply(deployment(namespace, "beside", 1))
        cluster.wait_until_ready(namespace, "beside")
        assert places(cluster, namespace) == [None, None, None, "e2e-node"]
        scheduler = stack.enter_context(cluster.start_scheduler(CONFIGURATION))
        pods = cluster.wait_until_ready(namespace, "web")
        (place,) = {pod["spec"]["nodeName"] for pod in pods}
        assert place in {small, other}
        assert "scheduler_schedule_attempts_total{" in scheduler.client.ask("GET", "/metrics").body.decode()


def test_pods_of_a_node_that_a_test_made_run_and_end_with_it(cluster: Cluster, namespace: str) -> None:
    node = NodeSpec(f"{namespace}-node", address="10.97.3.4", taints=[{"key": POOL, "effect": "NoSchedule"}])
    on_it = {"nodeName": node.name}

    def pods() -> list[Document]:
        return cluster.client.items(f"/api/v1/namespaces/{namespace}/pods")

    cluster.apply(deployment(namespace, "web", 1, **on_it))
    cluster.wait_for("a pod of a node that is not there", pods)
    with extra_nodes(cluster.client, node):
        assert cluster.client.get(f"{NODES}/{node.name}")["spec"]["taints"] == list(node.taints)
        (pod,) = cluster.wait_until_ready(namespace, "web")
        assert (pod["spec"]["nodeName"], pod["status"]["hostIP"]) == (node.name, "10.97.3.4")
        name = pod["metadata"]["name"]
        cluster.client.create(
            f"/api/v1/namespaces/{namespace}/pods/{name}/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}},
        )
        cluster.wait_for("its end", lambda: name not in {one["metadata"]["name"] for one in pods()})
        (last,) = cluster.wait_until_ready(namespace, "web")
    uid = last["metadata"]["uid"]
    cluster.wait_for("the end of what the node had", lambda: uid not in {one["metadata"]["uid"] for one in pods()})


@pytest.mark.parametrize(
    ("configuration", "error", "message"),
    [
        ({}, ValueError, "name each"),
        ({"profiles": [{"schedulerName": "default-scheduler"}]}, ValueError, "not default-scheduler"),
        ({"profiles": [{"schedulerName": "a"}], "no": 1}, ProcessFailedError, "unknown field"),
    ],
    ids=["no name", "the default's", "an unknown field"],
)
def test_an_invalid_configuration_is_refused(
    cluster: Cluster, configuration: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message), cluster.start_scheduler(configuration):
        pass
