"""Notices nodes that lost their Node object and have it again while their samples still count. Not thread-safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.nodes.queries.expressions import STEP_SECONDS
from adapter.nodes.windows.grid import kept_columns

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode

_KEPT_SECONDS: Final = kept_columns(STEP_SECONDS) * STEP_SECONDS
"""How far back samples are kept. A node that was away for longer is as a new one: its windows fill as time passes."""


class NodeAbsences:
    """The nodes that had a Node object some minutes ago."""

    def __init__(self) -> None:
        self._names: frozenset[str] = frozenset()
        self._gone_at: dict[str, float] = {}
        """Unix seconds at which each node had no Node object any more."""

    def have_ended(self, now: float, nodes: tuple[ClusterNode, ...] | None) -> bool:
        """Return whether a node is back that went minutes ago; `nodes` are all Node objects at this refresh."""
        if not nodes:
            # If they are unknown, or all are gone, all samples are requested again anyway.
            return False
        names = frozenset(node.name for node in nodes)
        gone_at = {name: at for name, at in self._gone_at.items() if abs(now - at) < _KEPT_SECONDS}
        self._gone_at = {name: at for name, at in gone_at.items() if name not in names}
        self._gone_at |= dict.fromkeys(self._names - names, now)
        self._names = names
        return len(gone_at.keys() & names) > 0
