"""`tidewatch-recommender run` sizes MachineDeployments and CapacityBuffers, with the rights of its configuration."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pytest

from recommender.kinds.cluster_size.scale_up.pending_pods import SETTLING_SECONDS
from tests.e2e.cluster_size.machine_groups import BUFFERS, DELETE, GROUP, MAX, PAUSED, MachineGroups, define, undefine
from tests.e2e.support.figures import state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.controlplane.cluster import Cluster
    from tests.support.recommenders import Recommender

# Nodes wait for their timers, and the program is started again.
pytestmark = pytest.mark.timeout(240)

__all__ = ["state"]

NEVER_SMALLER: Final = {"enabled": False}
POLL_INTERVAL_SECONDS: Final = 55
"""An interval whose end comes too late for pods that are created after the first decision."""


@pytest.fixture(scope="module")
def machines(cluster: Cluster) -> Iterator[Cluster]:
    """Yield the cluster with the kinds of Cluster API, in which pods stay Pending."""
    cluster.wait_until_empty()
    define(cluster)
    try:
        with cluster.without_kubelet():
            yield cluster
    finally:
        undefine(cluster)


@pytest.fixture
def groups(machines: Cluster, namespace: str, tmp_path: Path) -> Iterator[MachineGroups]:
    """Yield a namespace for a group of nodes; its pods go before the stand-in for the kubelet could bind them."""
    found = MachineGroups(machines, namespace, tmp_path)
    with found.stack:
        yield found
    for pod in machines.client.items(f"/api/v1/namespaces/{namespace}/pods"):
        path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}"
        machines.client.delete(path, {"gracePeriodSeconds": 0})


def cluster_api(groups: MachineGroups, **more: object) -> dict[str, Any]:
    """Return the settings for the groups of the namespace."""
    return {"nodeGroups": {"clusterAPI": {"namespace": groups.namespace, **more}}}


def test_pending_pods_raise_a_machine_deployment_within_its_limits_unless_it_is_paused(groups: MachineGroups) -> None:
    client, wait_for = groups.cluster.client, groups.cluster.wait_for
    groups.create_group(1, least=1, most=3)
    groups.add_pods("a", "b", "c", "d", "e")
    groups.configure({**cluster_api(groups), "scaleDown": NEVER_SMALLER}, "outputs: [metric, scale]")
    program = groups.start()
    wait_for("the largest size", lambda: groups.size == 3, why_not=lambda: groups.decision(program))
    series = f'tidewatch_recommended_nodes{{node_group="{groups.name}",recommendation="workers"}}'
    wait_for("the metric", lambda: program.metric(series) == "3.0", why_not=lambda: program.get("/metrics", plain=True))
    assert len(groups.decision(program)["unschedulable"]) == 2

    client.merge(groups.group, {"metadata": {"annotations": {MAX: "10"}}})
    wait_for("a place for all", lambda: groups.size == 5)

    client.merge(groups.group, {"metadata": {"annotations": {PAUSED: ""}}})
    groups.add_pods("f", "g")
    wait_for("the metric", lambda: program.metric(series) == "7.0")
    wait_for("the reason", lambda: PAUSED in str(groups.decision(program)["left_out"]))
    assert groups.size == 5

    client.merge(groups.group, {"metadata": {"annotations": {PAUSED: None}}})
    wait_for("the size after the pause", lambda: groups.size == 7)
    assert groups.writes(3) == [f"machinedeployments/{GROUP}/scale"] * 3
    assert groups.refused_requests() == set()


def test_the_size_is_written_when_pods_of_an_idle_cluster_are_old_enough(
    groups: MachineGroups, state: Callable[[str, str], None]
) -> None:
    groups.create_group(1, least=1, most=9)
    settings = {**cluster_api(groups), "scaleDown": NEVER_SMALLER}
    groups.configure(settings, "outputs: [metric, scale]", poll_interval=f"{POLL_INTERVAL_SECONDS}s")
    program = groups.start()
    groups.add_pods("a", "b", "c")
    pods = groups.cluster.client.items(f"/api/v1/namespaces/{groups.namespace}/pods")
    came = max(datetime.fromisoformat(one["metadata"]["creationTimestamp"]) for one in pods)
    groups.cluster.wait_for("the size", lambda: groups.size == 3, why_not=lambda: groups.decision(program))
    written = groups.cluster.wait_for("the audit log", groups.written)
    seconds = (written[-1].end - came).total_seconds() - SETTLING_SECONDS
    state("from pods that are old enough to the written size", f"{seconds:.1f} s")
    assert SETTLING_SECONDS + seconds < POLL_INTERVAL_SECONDS, "the pods woke the loop when they were old enough"


def test_a_node_waits_out_its_timer_over_a_kill_and_its_machine_is_marked_before_the_size_is_lowered(
    groups: MachineGroups,
) -> None:
    waited_seconds = 5.0
    client, wait_for = groups.cluster.client, groups.cluster.wait_for
    groups.create_group(2, least=1, most=3)
    groups.add_pods("busy", node=groups.node(0))
    scale_down = {"unneededTime": "15s", "delayAfterAdd": "0s"}
    groups.configure({**cluster_api(groups, markMachines=True), "scaleDown": scale_down}, "outputs: [metric, scale]")
    first = groups.start()

    def waited(program: Recommender) -> float:
        found = groups.decision(program)["removals"]
        assert [one["node"] for one in found] in ([], [groups.node(1)])
        return found[0]["unneeded_seconds"] if found else 0.0

    wait_for("a timer", lambda: waited(first) >= waited_seconds, why_not=lambda: groups.decision(first))
    first.process.kill()
    second = groups.start("-again")
    assert waited(second) >= waited_seconds

    wait_for("the lower size", lambda: groups.size == 1, why_not=lambda: groups.decision(second))
    assert groups.writes(2) == [f"machines/{groups.machine(1)}", f"machinedeployments/{GROUP}/scale"]
    marked = client.get(groups.path("machines", groups.machine(1)))["metadata"]["annotations"]
    assert marked[DELETE]
    assert DELETE not in (client.get(groups.path("machines", groups.machine(0)))["metadata"].get("annotations") or {})
    assert groups.refused_requests() == set()


@pytest.mark.parametrize("is_killed", [False, True], ids=["reloaded", "killed"])
def test_a_capacity_buffer_gets_the_chunks_that_the_reserve_needs_and_its_own_size_back_when_nothing_sizes_it(
    groups: MachineGroups, *, is_killed: bool
) -> None:
    client, wait_for = groups.cluster.client, groups.cluster.wait_for
    groups.create_group(1, least=1, most=3)
    groups.add_pods("busy", node=groups.node(0), cpu="2")
    container = {"name": "main", "image": "shop/pause:1", "resources": {"requests": {"cpu": "500m"}}}
    template = {"metadata": {"name": "chunk"}, "template": {"spec": {"containers": [container]}}}
    client.create(f"/api/v1/namespaces/{groups.namespace}/podtemplates", template)
    buffers = f"/apis/{BUFFERS}/v1beta1/namespaces/{groups.namespace}/capacitybuffers"
    client.create(
        buffers,
        {
            "apiVersion": f"{BUFFERS}/v1beta1",
            "kind": "CapacityBuffer",
            "metadata": {"name": "reserve"},
            "spec": {"podTemplateRef": {"name": "chunk"}, "replicas": 7},
        },
    )

    def chunks() -> int | None:
        found: int | None = client.get(f"{buffers}/reserve")["spec"].get("replicas")
        return found

    settings = {**cluster_api(groups), "scaleDown": NEVER_SMALLER}
    lines = ("outputs: [metric, capacityBuffer]", f"capacityBuffer: {{namespace: {groups.namespace}, name: reserve}}")
    groups.configure({**settings, "headroom": "50%"}, *lines)
    program = groups.start()
    wait_for("two chunks", lambda: chunks() == 2, why_not=lambda: groups.decision(program))
    groups.configure({**settings, "headroom": "100%"}, *lines)
    wait_for("four chunks", lambda: chunks() == 4, why_not=lambda: groups.decision(program))
    if is_killed:
        program.process.kill()
    groups.configure(settings, "outputs: [metric]")
    if is_killed:
        program = groups.start("-again")
    wait_for("the size from before", lambda: chunks() == 7, why_not=lambda: groups.decision(program))
    annotations = client.get(f"{buffers}/reserve")["metadata"].get("annotations") or {}
    assert [key for key in annotations if key.startswith("tidewatch.io/")] == []
    assert groups.size == 1
    assert groups.refused_requests() == set()
