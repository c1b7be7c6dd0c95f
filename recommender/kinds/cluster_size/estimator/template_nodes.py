"""Adds nodes that are made from a template."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL

if TYPE_CHECKING:
    from collections.abc import Collection

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeTemplate
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
