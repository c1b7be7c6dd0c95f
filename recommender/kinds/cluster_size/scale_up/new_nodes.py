"""Nodes that do not exist yet, or are not ready yet, as nodes of the snapshot."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, islice
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.estimator.template_nodes import add_new_node, own_pods, owner_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeTemplate
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot


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
