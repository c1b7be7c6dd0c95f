"""The one value that all requests are answered from: the load, the columns of scores, and what they rest on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.cluster.state import ClusterNode, ClusterPod
    from adapter.nodes.model.columns import NodeColumns
    from adapter.nodes.model.loads import LoadSnapshot

ScoreBasis: TypeAlias = Literal["metrics", "none", "requests"]
"""What scores rest on: metrics; nothing, so that all nodes get the middle score (no node has usable metrics yet, or for
less than five minutes); requests, best fit, after that."""


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """Everything that is known, at one moment. Replaced as a whole, in one place."""

    columns: NodeColumns
    loads: LoadSnapshot | None
    """None before the first data."""
    basis: ScoreBasis
    nodes: tuple[ClusterNode, ...] = ()
    """In the order of `columns.names`; empty where Node objects are not known."""
    pods_by_node: Mapping[str, Sequence[ClusterPod]] = field(default_factory=dict)
    """Pods that are bound and have not ended."""
    pods_by_namespace: Mapping[str, Sequence[ClusterPod]] = field(default_factory=dict)
    are_nodes_known: bool = True
    """Whether there are Node objects, so that the capacities of nodes are known. Without them nothing can be scored."""
