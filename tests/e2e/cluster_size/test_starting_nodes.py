"""Nodes that are Ready before they can hold pods, and API server outages cause no extra node and no late one.

Times are compressed: `COMPRESSION=1 OUTAGES=10 make e2e suite=tests/e2e/cluster_size/test_starting_nodes.py` uses the
real ones. The seed of the outages is fixed; `OUTAGE_SEED` sets another one.
"""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.e2e.cluster_size.machine_groups import MachineGroups, define, undefine
from tests.e2e.cluster_size.stand_in_cloud import NOT_READY, SlowStart, StandInCloud
from tests.e2e.support.figures import state
from tests.support.waiting import rounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from demo.machine.processes import ManagedProcess
    from tests.e2e.controlplane.cluster import Cluster
    from tests.support.recommenders import Recommender

__all__ = ["state"]

COMPRESSION: Final = float(os.environ.get("COMPRESSION", "10"))
OUTAGES: Final = int(os.environ.get("OUTAGES", "3"))
SEED: Final = int(os.environ.get("OUTAGE_SEED", "17"))
_SHORTEST_SECONDS: Final = 5.0
_LONGEST_SECONDS: Final = 120.0
_LATER_SECONDS: Final = 15.0
"""How long after the end of an outage the size must have been written."""
_STARTS: Final = (
    SlowStart("gpus", 75.0 / COMPRESSION, has_gpus=True),
    SlowStart("start-up", 45.0 / COMPRESSION, "startup-taint.cluster-autoscaler.kubernetes.io/warming"),
    SlowStart("network", 45.0 / COMPRESSION, "node.cilium.io/agent-not-ready"),
    SlowStart("not-ready", 4.0, NOT_READY),
)

pytestmark = pytest.mark.timeout(180 + OUTAGES * (60 + int(_LONGEST_SECONDS / COMPRESSION)))


@pytest.fixture
def groups(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[MachineGroups]:
    """Yield a namespace for groups of nodes, whose pods stay Pending until the stand-in for the cloud places them."""
    cluster.wait_until_empty()
    define(cluster)
    found = MachineGroups(cluster, namespace, tmp_path)
    try:
        with cluster.without_kubelet(), found.stack:
            yield found
            for pod in cluster.client.items(f"/api/v1/namespaces/{namespace}/pods"):
                path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}"
                cluster.client.delete(path, {"gracePeriodSeconds": 0})
    finally:
        undefine(cluster)


def started(groups: MachineGroups) -> Recommender:
    """Start a recommender that only adds nodes."""
    settings: dict[str, Any] = {
        "nodeGroups": {"clusterAPI": {"namespace": groups.namespace}},
        "scaleDown": {"enabled": False},
    }
    groups.configure(settings, "outputs: [metric, scale]")
    return groups.start()


def test_a_node_that_cannot_hold_pods_yet_is_the_only_one(
    groups: MachineGroups, state: Callable[[str, str], None]
) -> None:
    cloud = StandInCloud(groups, _STARTS)
    cloud.create_groups()
    program = started(groups)
    for start in _STARTS:
        cloud.add_pod(start, "web")
    groups.cluster.wait_for("all pods", cloud.step, why_not=lambda: groups.decision(program))
    # A decision that takes a complete node for one that is missing comes now.
    for _ in rounds(0.5, 3.0):
        assert cloud.step()
    assert cloud.sizes() == {start.group: 2 for start in _STARTS}
    assert sorted(groups.writes(len(_STARTS))) == sorted(f"machinedeployments/{start.group}/scale" for start in _STARTS)
    state("four slow starts, each with one node that suffices", "2 nodes each")


def test_during_an_outage_of_the_api_server_no_group_backs_off_and_no_node_is_requested_twice(
    groups: MachineGroups, state: Callable[[str, str], None]
) -> None:
    draw = random.Random(SEED)
    plain = SlowStart("plain", 2.0)
    cloud = StandInCloud(groups, (plain,))
    cloud.create_groups()
    program = started(groups)
    server = groups.cluster.plane.process("kube-apiserver")
    expected, later = 1, 0.0
    for outage in range(OUTAGES):
        seconds = draw.uniform(_SHORTEST_SECONDS, _LONGEST_SECONDS) / COMPRESSION
        burst = draw.randint(1, 4)
        for number in range(burst):
            cloud.add_pod(plain, f"{outage}-{number}")
        expected += burst
        began = time.monotonic()
        for _ in rounds(0.1, draw.uniform(0.0, 5.0)):
            cloud.step()
        with_size = _size_after_outage(cloud, server, seconds, expected)
        later = max(later, with_size - began - seconds)
        groups.cluster.wait_for("all pods", cloud.step, why_not=lambda: groups.decision(program))
        assert cloud.sizes() == {"plain": expected}
        assert "backing off" not in str(groups.decision(program)["node_groups"])
    assert later <= _LATER_SECONDS
    assert len(groups.writes(OUTAGES)) <= expected
    state(f"{OUTAGES} outages of the API server", f"sizes written {later:.1f} s after the outage at the latest")


def _size_after_outage(cloud: StandInCloud, server: ManagedProcess, seconds: float, expected: int) -> float:
    """Stop the API server for some seconds; return when the size was reached, and assert that it is not exceeded."""
    server.pause()
    try:
        for _ in rounds(0.1, seconds):
            pass
    finally:
        server.resume()

    def sized() -> bool:
        size = cloud.sizes()["plain"]
        assert size <= expected
        return size == expected

    cloud.groups.cluster.wait_for("the size", sized)
    return time.monotonic()
