"""Nodes that do not exist yet, or are not ready yet, as nodes of the snapshot."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, islice
from typing import TYPE_CHECKING

from adapter.cluster.scheduling.constraints import HOSTNAME_LABEL

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from adapter.cluster.predicates.snapshot import NodeInfo, Snapshot
    from adapter.cluster.state import ClusterNode, ClusterPod
    from recommender.cluster_size.model.groups import NodeGroup, NodeTemplate


def add_new_node(snapshot: Snapshot, template: NodeTemplate, name: str) -> NodeInfo:
    """Add a node made by a template, with a hostname and pods of its own. The name must be free."""
    node = replace(template.node, name=name, labels={**template.node.labels, HOSTNAME_LABEL: name})
    return snapshot.add_node(node, _own_pods(template, name, ()))


def free_names(snapshot: Snapshot, prefix: str) -> Iterator[str]:
    """Yield `PREFIX-0`, `PREFIX-1` and so on, without the names that nodes of the snapshot have."""
    return (name for place in count() if (name := f"{prefix}-{place}") not in snapshot.nodes)


def add_new_nodes(snapshot: Snapshot, group: NodeGroup, number: int, suffix: str = "new") -> list[NodeInfo]:
    """Add nodes of a group, which must have a template; they are called `GROUP-SUFFIX-0` and so on."""
    assert group.template is not None, "groups without a template are left out"
    names = islice(free_names(snapshot, f"{group.name}-{suffix}"), number)
    return [add_new_node(snapshot, group.template, name) for name in names]


def make_ready(snapshot: Snapshot, node: ClusterNode, template: NodeTemplate) -> None:
    """Put a node that is starting into the state of its group's template.

    It keeps its name, labels and pods, and gets the pods of the template whose controllers have none on it yet.
    """
    present = snapshot.nodes[node.name]
    controllers = [pod.controller.uid for pod in present.pods.values() if pod.controller is not None]
    ready = replace(template.node, name=node.name, labels={**template.node.labels, **node.labels})
    pods = snapshot.remove_node(node.name)
    snapshot.add_node(ready, (*pods, *_own_pods(template, node.name, controllers)))


def _own_pods(template: NodeTemplate, node: str, present: Collection[str]) -> list[ClusterPod]:
    """Return the template's pods for one node, without those of controllers that have one there already."""
    return [
        replace(pod, name=f"{pod.name}-{node}", uid="", node=node)
        for pod in template.pods
        if pod.controller is None or pod.controller.uid not in present
    ]
