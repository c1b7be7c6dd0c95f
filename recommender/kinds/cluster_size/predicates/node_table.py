"""Nodes by name in an order that is kept when a node is removed and put back."""

from __future__ import annotations

from collections.abc import Mapping, ValuesView
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo


class NodeTable(Mapping[str, "NodeInfo"]):
    """Nodes in the order in which they were added.

    A removed node leaves a gap at its place, so that putting it back takes no longer than removing it.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, NodeInfo] = {}
        self._places: dict[int, NodeInfo] = {}
        self._next_place = 0

    def __getitem__(self, name: str) -> NodeInfo:
        return self._by_name[name]

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[str]:
        return (info.node.name for info in self.values())

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def values(self) -> ValuesView[NodeInfo]:
        """Return the nodes in order."""
        return _InOrder(self)

    def in_order(self) -> Iterator[NodeInfo]:
        """Yield the nodes in order."""
        if len(self._places) == len(self._by_name):
            return iter(self._places.values())
        return (info for info in self._places.values() if not info.is_removed)

    def append(self, info: NodeInfo) -> None:
        """Add a node at the end. Raises ValueError if the name is taken."""
        name = info.node.name
        if name in self._by_name:
            raise ValueError(f"node {name!r} is in the snapshot already: give each node a name of its own")
        info.place = self._next_place
        self._next_place += 1
        self._by_name[name] = self._places[info.place] = info

    def forget(self, info: NodeInfo) -> None:
        """Undo `append` of a node."""
        del self._by_name[info.node.name], self._places[info.place]
        info.is_removed = True

    def remove(self, info: NodeInfo) -> None:
        """Take a node out, but keep its place."""
        del self._by_name[info.node.name]
        info.is_removed = True

    def put_back(self, info: NodeInfo) -> None:
        """Undo `remove`."""
        self._by_name[info.node.name] = info
        info.is_removed = False


class _InOrder(ValuesView["NodeInfo"]):
    """A view of the nodes like the values of a dictionary, but without a look-up for each node."""

    def __init__(self, table: NodeTable) -> None:
        super().__init__(table)
        self._table = table

    def __iter__(self) -> Iterator[NodeInfo]:
        return self._table.in_order()
