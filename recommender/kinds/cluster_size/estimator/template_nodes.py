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
    """Return the template's pods for one node, without those whose controllers have a pod there already.

    `present` are the identifiers of these controllers. The pods' names contain characters that are not allowed in a
    real pod's name, so the two never clash.
    """
    return [
        replace(pod, name=f"{pod.name}@{node}#{number}", uid="", node=node)
        for number, pod in enumerate(template.pods)
        if pod.controller is None or pod.controller.uid not in present
    ]
