"""The unmodified kube-scheduler places pods with whole GPUs as `gpu-fragmentation` says."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from tests.e2e.nodes.load_aware import loaded_cluster, pod, scheduler_configuration
from tests.e2e.nodes.node_loads import NodeLoad
from tests.e2e.support.figures import state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.nodes.load_aware import NodesProgram

__all__ = ["state"]

pytestmark = pytest.mark.timeout(240)

NAME: Final = "by-gpus"
GPU: Final = "nvidia.com/gpu"
GPUS: Final = {"pairs-0": 2, "pairs-1": 2, "pairs-2": 2, "filled-0": 8, "filled-1": 4, "filled-2": 2, "filled-3": 4}
POOLS: Final = {pool: [NodeLoad(0.2) for node in GPUS if node.startswith(pool)] for pool in ("pairs", "filled")}
CONFIGURATION: Final = {
    "apiVersion": "tidewatch.io/v1alpha1",
    "kind": "SchedulingConfiguration",
    "policies": [{"name": "gpu-fragmentation"}],
    "schedulerNames": [NAME],
}


@dataclass(frozen=True, slots=True)
class Placing:
    """Pods that are placed one after another."""

    cluster: Cluster
    program: NodesProgram
    namespace: str

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def allocated(self) -> dict[str, float]:
        """Return a score that changes with each pod on a node."""
        return self.program.scores("most-allocated", "400m")

    def place(self, name: str, pool: str, gpus: int) -> str:
        """Create a pod and return its node, once the program counts it there."""
        before = self.allocated()
        wanted = pod(name, pool, NAME, "400m")
        wanted["spec"]["containers"][0]["resources"]["limits"] = {GPU: str(gpus)}
        self.cluster.client.create(self.path, wanted)

        def node() -> str:
            return str(self.cluster.client.get(f"{self.path}/{name}")["spec"].get("nodeName", ""))

        found = self.cluster.wait_for(f"a node for {name}", node)
        self.cluster.wait_for("the new pod on its node", lambda: self.allocated()[found] != before[found])
        return found


@pytest.fixture(scope="module")
def program(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodesProgram]:
    """Yield the program, and a scheduler that asks it, in a cluster with GPU nodes."""
    extended = {node: {GPU: str(count)} for node, count in GPUS.items()}
    with (
        loaded_cluster(cluster, tmp_path_factory.mktemp("gpus"), "gpus", POOLS, extended) as loaded,
        loaded.running(CONFIGURATION) as program,
        cluster.start_scheduler(scheduler_configuration(program.url, NAME)),
    ):
        yield program


@pytest.fixture
def placing(cluster: Cluster, program: NodesProgram, namespace: str) -> Iterator[Placing]:
    """Yield the placing of this test's pods, which are removed at its end: the next test has a mix of its own."""
    found = Placing(cluster, program, namespace)
    before = found.allocated()
    yield found
    for each in cluster.client.items(found.path):
        cluster.client.delete(f"{found.path}/{each['metadata']['name']}", {"gracePeriodSeconds": 0})
    cluster.wait_for("nodes without the pods", lambda: found.allocated() == before)


def test_a_pod_with_two_gpus_finds_room_because_those_with_one_were_packed(placing: Placing) -> None:
    """If the first three pods were spread over the three nodes with two GPUs each, no node would have two left."""
    single = [placing.place(f"single-{number}", "pairs", 1) for number in range(3)]
    assert sorted(Counter(single).values()) == [1, 2]
    assert placing.place("double", "pairs", 2) not in single


def test_ten_pods_with_one_gpu_go_to_the_nodes_that_they_fill(placing: Placing) -> None:
    places = Counter(placing.place(f"single-{number}", "filled", 1) for number in range(10))
    assert places == {"filled-1": 4, "filled-2": 2, "filled-3": 4}
