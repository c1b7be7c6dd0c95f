"""Nodes of a snapshot that are made from the template of their group: new ones, and those that are starting."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, islice
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeTemplate
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot


def add_new_node(snapshot: Snapshot, template: NodeTemplate, name: str) -> NodeInfo:
    """Add a node made by a template, with a hostname and pods of its own. The name must be free."""
    return snapshot.add_node(new_node(template, name), own_pods(template, name))


def new_node(template: NodeTemplate, name: str) -> ClusterNode:
    """Return a node made by a template, with a hostname of its own."""
    return replace(template.node, name=name, labels={**template.node.labels, HOSTNAME_LABEL: name})


def own_pods(template: NodeTemplate, node: str, present: Collection[str] = ()) -> list[ClusterPod]:
    """Return the template's pods for one node, without those whose owners have a pod there already.

    `present` are these owners, as `owner_of` names them. The pods' names contain characters that are not allowed in a
    real pod's name, so the two never clash.
    """
    return [
        replace(pod, name=f"{pod.name}@{node}#{number}", uid="", node=node)
        for number, pod in enumerate(template.pods)
        if pod.controller is None or owner_of(pod) not in present
    ]


def owner_of(pod: ClusterPod) -> str:
    """Return what identifies the owner of a pod that comes with its node; empty if the pod has no controller.

    A static pod's controller is its node, whose name ends the pod's name, so the rest of the name identifies it.
    """
    owner = pod.controller
    if owner is None:
        return ""
    return f"{pod.namespace}/{pod.name.removesuffix(f'-{owner.name}')}" if owner.kind == "Node" else owner.uid


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

    It keeps its name, labels and pods, and gets the pods of the template whose owners have none on it yet.
    """
    present = snapshot.nodes[node.name]
    owners = {owner_of(pod) for pod in present.pods.values() if pod.controller is not None}
    ready = replace(template.node, name=node.name, labels={**template.node.labels, **node.labels})
    pods = snapshot.remove_node(node.name)
    snapshot.add_node(ready, (*pods, *own_pods(template, node.name, owners)))
