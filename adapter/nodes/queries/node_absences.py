"""Notices nodes that lost their Node object and have it again while their samples still count. Not thread-safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.nodes.queries.expressions import STEP_SECONDS
from adapter.nodes.windows.grid import kept_columns

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode

_KEPT_SECONDS: Final = kept_columns(STEP_SECONDS) * STEP_SECONDS
"""How far back samples are kept. A node that was away for longer is as a new one: its windows fill as time passes."""
_COUNTS_AGAIN_SECONDS: Final = 1800.0
"""How long after a return that counted, other returns of the same node do not count: the Node object of a broken
machine may come and go all the time, and each return that counts costs a query for all samples of all nodes."""


class NodeAbsences:
    """The nodes that had a Node object some minutes ago."""

    def __init__(self) -> None:
        self._names: frozenset[str] = frozenset()
        self._gone_at: dict[str, float] = {}
        """Unix seconds at which each node had no Node object any more."""
        self._back_at: dict[str, float] = {}
        """When each node last returned and that counted, in Unix seconds."""

    def have_ended(self, now: float, nodes: tuple[ClusterNode, ...] | None) -> bool:
        """Return whether a node has returned after minutes, unless it comes and goes all the time.

        `nodes` are all Node objects at this refresh.
        """
        if not nodes:
            # If they are unknown, or all are gone, all samples are requested again anyway.
            return False
        names = frozenset(node.name for node in nodes)
        gone_at = {name: at for name, at in self._gone_at.items() if abs(now - at) < _KEPT_SECONDS}
        self._gone_at = {name: at for name, at in gone_at.items() if name not in names}
        self._gone_at |= dict.fromkeys(self._names - names, now)
        self._names = names
        self._back_at = {name: at for name, at in self._back_at.items() if abs(now - at) < _COUNTS_AGAIN_SECONDS}
        back = (gone_at.keys() & names) - self._back_at.keys()
        self._back_at |= dict.fromkeys(back, now)
        return len(back) > 0
