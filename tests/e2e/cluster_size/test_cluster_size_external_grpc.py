"""`tidewatch-recommender run` and a provider of Cluster Autoscaler's gRPC protocol: mutual TLS, and its own rights.

The provider refuses what real ones refuse, and its machines become nodes. Cluster Autoscaler itself cannot be built
here, since the proxy of Go modules does not have it; the order of calls is that of its documented loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from demo.machine.certificates import Authority
from tests.e2e.cluster_size.machine_groups import MachineGroups
from tests.e2e.controlplane.nodes import PATH as NODES
from tests.e2e.controlplane.nodes import NodeSpec, register
from tests.support.grpc_provider import CloudGroup, GrpcProvider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.controlplane.cluster import Cluster

# Nodes wait for their timers, and a process that follows another one waits, too.
pytestmark = pytest.mark.timeout(240)

POOL: Final = "pool"
QUICK: Final = {"unneededTime": "2s", "delayAfterAdd": "0s", "delayAfterDelete": "0s"}


class Cloud:
    """One group of a cloud whose machines are nodes of the cluster."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.group = CloudGroup(POOL, 1, 5)
        self.provider = GrpcProvider(self.group)
        authority = Authority(folder / "serving")
        server, client = authority.server(), authority.client("tidewatch")
        address = self.provider.start((server.certificate_file, server.key_file), server.ca_file)
        self.settings: dict[str, Any] = {
            "address": address,
            "caFile": str(server.ca_file),
            "certFile": str(client.certificate_file),
            "keyFile": str(client.key_file),
        }

    def node(self, number: int) -> str:
        return f"{self.namespace}-{number}"

    def add_machine(self, number: int) -> None:
        """Add a machine with its node."""
        name = self.node(number)
        register(self.cluster.client, NodeSpec(name, labels={"pool": self.namespace}))
        self.cluster.client.merge(f"{NODES}/{name}", {"spec": {"providerID": f"e2e:///{name}"}})
        self.group.machines.append(f"e2e:///{name}")

    def end(self) -> None:
        self.provider.stop()
        for number in range(5):
            self.cluster.client.delete(f"{NODES}/{self.node(number)}")


@pytest.fixture
def cloud(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Cloud]:
    found = Cloud(cluster, namespace, tmp_path)
    try:
        found.add_machine(0)
        yield found
    finally:
        found.end()


@pytest.fixture
def unscheduled(cluster: Cluster) -> Iterator[None]:
    """Yield a cluster in which pods stay Pending."""
    with cluster.without_kubelet():
        yield


@pytest.fixture
def program(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[MachineGroups]:
    found = MachineGroups(cluster, namespace, tmp_path)
    with found.stack:
        yield found


def sized(cloud: Cloud, **more: object) -> dict[str, Any]:
    return {"nodeGroups": {"externalGRPC": {**cloud.settings, **more}}}


@pytest.mark.usefixtures("unscheduled")
def test_a_group_grows_once_although_the_process_is_killed_during_the_call(
    cloud: Cloud, program: MachineGroups
) -> None:
    wait_for, provider = cloud.cluster.wait_for, cloud.provider
    program.configure({**sized(cloud), "scaleDown": {"enabled": False}}, "outputs: [metric, scale]")
    first = program.start()

    def kill_and_do_it(request: Any) -> Any:  # noqa: ANN401 - a message
        first.process.kill()
        del provider.instead["NodeGroupIncreaseSize"]
        return provider.usual("NodeGroupIncreaseSize", request)

    provider.instead = {"NodeGroupIncreaseSize": kill_and_do_it}
    program.add_pods("a", "b", "c")
    wait_for("the call", provider.changes, why_not=lambda: program.decision(first))
    asked = provider.changes()
    assert asked == [("IncreaseSize", POOL, 2)], "one pod has a place"

    second = program.start("-again")
    assert cloud.group.size == 3
    for number in (1, 2):
        cloud.add_machine(number)

    def is_settled() -> bool:
        [group] = program.decision(second)["node_groups"]
        return (group["current"], group["recommended"], program.decision(second)["inputs"]["nodes"]) == (3, 3, 4)

    wait_for("a decision with all nodes", is_settled, why_not=lambda: program.decision(second))
    assert provider.changes() == asked
    assert program.refused_requests() == set()


def test_a_node_is_drained_within_its_budgets_and_deleted(cloud: Cloud, program: MachineGroups) -> None:
    client, wait_for, provider = cloud.cluster.client, cloud.cluster.wait_for, cloud.provider
    program.add_pods("busy", node=cloud.node(0), cpu="2")
    cloud.add_machine(1)
    metadata: dict[str, Any] = {"name": "web", "namespace": cloud.namespace, "labels": {"app": "web"}}
    selector = {"matchLabels": metadata["labels"]}
    container = {"name": "main", "image": "shop/web:1", "resources": {"requests": {"cpu": "1"}}}
    pod: dict[str, Any] = {"metadata": metadata, "spec": {"containers": [container]}}
    # Its ReplicaSet adopts the pod, which the stand-in for a scheduler would have put elsewhere.
    pods = f"/api/v1/namespaces/{cloud.namespace}/pods"
    client.create(pods, {**pod, "spec": {**pod["spec"], "nodeName": cloud.node(1)}})
    spec = {"replicas": 1, "selector": selector, "template": pod}
    cloud.cluster.apply(
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec},
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": {"maxUnavailable": 1, "selector": selector},
        },
    )
    wait_for("the adoption", lambda: client.get(f"{pods}/web")["metadata"].get("ownerReferences"))

    def delete_and_go(request: Any) -> Any:  # noqa: ANN401 - a message
        left = [
            pod["metadata"]["name"]
            for pod in cloud.cluster.pods(cloud.namespace)
            if pod["spec"].get("nodeName") == cloud.node(1)
        ]
        assert left == [], "the provider is asked once the node is empty"
        node = client.get(f"{NODES}/{cloud.node(1)}")
        assert node["spec"]["unschedulable"] is True
        answer = provider.usual("NodeGroupDeleteNodes", request)
        client.delete(f"{NODES}/{cloud.node(1)}")
        return answer

    provider.instead = {"NodeGroupDeleteNodes": delete_and_go}
    program.configure({**sized(cloud, deleteNodes=True), "scaleDown": QUICK}, "outputs: [metric, scale]")
    running = program.start()
    wait_for("the deletion", provider.changes, why_not=lambda: program.decision(running))
    assert provider.changes() == [("DeleteNodes", POOL, [cloud.node(1)])]
    moved = [one for one in cloud.cluster.pods(cloud.namespace, "app=web") if one["metadata"]["name"] != "web"]
    assert [one["metadata"]["ownerReferences"][0]["kind"] for one in moved] == ["ReplicaSet"]
    assert not client.get(f"{NODES}/{cloud.node(0)}")["spec"].get("unschedulable")
    assert program.refused_requests() == set()


def test_a_machine_that_cannot_be_created_is_deleted_and_named_before(cloud: Cloud, program: MachineGroups) -> None:
    client, provider = cloud.cluster.client, cloud.provider
    for each in client.get(NODES)["items"]:
        if not each["spec"].get("providerID"):
            # While any node has no provider id, it could be the machine.
            name = each["metadata"]["name"]
            client.merge(f"{NODES}/{name}", {"spec": {"providerID": f"e2e:///other/{name}"}})
    machine = f"e2e:///{cloud.node(9)}"
    cloud.group.machines.append(machine)
    cloud.group.errors[machine] = "OutOfResources"
    program.configure(
        {**sized(cloud, deleteNodes=True), "scaleDown": {**QUICK, "unneededTime": "1h"}}, "outputs: [metric, scale]"
    )
    running = program.start()

    def failed() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = program.decision(running)["failed_machines"] or []
        return found

    cloud.cluster.wait_for("the failed machine", failed, why_not=lambda: program.decision(running))
    assert [(one["machine"], one["group"], one["reason"]) for one in failed()] == [
        (machine, POOL, "it cannot be created: OutOfResources")
    ]
    cloud.cluster.wait_for("the deletion", provider.changes, seconds=150.0, why_not=lambda: program.decision(running))
    assert provider.changes() == [("DeleteNodes", POOL, [machine])]
    assert cloud.group.size == 1
    cloud.cluster.wait_for("a decision without it", lambda: not failed(), why_not=lambda: program.decision(running))
    assert provider.changes() == [("DeleteNodes", POOL, [machine])]
    assert program.refused_requests() == set()
