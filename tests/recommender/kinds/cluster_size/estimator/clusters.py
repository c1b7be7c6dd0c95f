"""Groups and templates, made from the numbers of Cluster Autoscaler's cases."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.values.constraints import NO_CONSTRAINTS, HostPort, PodScheduling, SpreadConstraint
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.estimator.binpacking import estimate
from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup
from recommender.kinds.cluster_size.model.groups import NodeTemplate
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.recommender.kinds.cluster_size.builders import node, pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.estimator.estimate_model import Estimate

MIB: Final = 2**20
MANY: Final = 1_000_000
"""More nodes than any of these estimates opens."""
TEMPLATE: Final = {"cpu_milli": 1000, "mem_bytes": 5000 * MIB, "pods": 10, "zone": "zone-mars"}
OLD: Final = {"name": "oldnode", "cpu_milli": 100, "mem_bytes": 100 * MIB, "pods": 10, "zone": "zone-jupiter"}
ZONE: Final = "topology.kubernetes.io/zone"
LABELS: Final = {"app": "estimatee"}
SELECTOR: Final = parse_selector("app=estimatee")


def node_of(numbers: Mapping[str, Any], name: str) -> ClusterNode:
    """Return the node with these `cpu_milli`, `mem_bytes`, `pods` and `zone`."""
    zone = {ZONE: numbers["zone"]} if "zone" in numbers else {}
    return node(name, f"{numbers['cpu_milli']}m", str(numbers["mem_bytes"]), numbers.get("pods", 110), labels=zone)


def template_of(numbers: Mapping[str, Any]) -> NodeTemplate:
    """Return the template; `used_cpu_milli` is what a DaemonSet uses on each node."""
    used = numbers.get("used_cpu_milli", 0)
    return NodeTemplate(node_of(numbers, "template"), (pod("agent", f"{used}m", ""),) if used else ())


def snapshot_of(numbers: Iterable[Mapping[str, Any]]) -> Snapshot:
    """Return a snapshot of existing nodes with these numbers."""
    return Snapshot([node_of(each, each["name"]) for each in numbers], [])


def groups_of(numbers: Iterable[Mapping[str, Any]], snapshot: Snapshot) -> list[PodGroup]:
    """Return a group for each entry of the numbers, with its constraints as facts of its pods."""
    return [_group(f"group-{index}", each, snapshot) for index, each in enumerate(numbers)]


def estimated(template: Mapping[str, Any], groups: list[Mapping[str, Any]], max_nodes: int = MANY) -> Estimate:
    """Return the estimate for a cluster that has one small old node in another zone."""
    snapshot = snapshot_of([OLD])
    return estimate(
        snapshot, groups_of(groups, snapshot), template_of(template), name_prefix="new", max_nodes=max_nodes
    )


def _group(name: str, numbers: Mapping[str, Any], snapshot: Snapshot) -> PodGroup:
    first = pod(
        f"{name}-0",
        f"{numbers['cpu_milli']}m",
        str(numbers["mem_bytes"]),
        labels=LABELS,
        controller=name,
        scheduling=_scheduling(numbers),
    )
    others = (replace(first, name=f"{name}-{number}", uid="") for number in range(1, numbers.get("count", 1)))
    return PodGroup(snapshot.shape(first), (first, *others))


def _scheduling(numbers: Mapping[str, Any]) -> PodScheduling:
    ports = (HostPort("TCP", "0.0.0.0", numbers["host_port"]),) if "host_port" in numbers else ()
    if "max_skew" not in numbers:
        return PodScheduling(host_ports=ports) if ports else NO_CONSTRAINTS
    spread = SpreadConstraint(
        numbers["topology_key"], numbers["max_skew"], SELECTOR, min_domains=numbers.get("min_domains", 1)
    )
    return PodScheduling(spread=(spread,), host_ports=ports)
