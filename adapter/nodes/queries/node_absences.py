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
        self._nodes: dict[str, ClusterNode] = {}
        self._gone: dict[str, tuple[float, ClusterNode]] = {}
        """Unix seconds at which each node had no Node object any more, and its last one."""
        self._back_at: dict[str, float] = {}
        """When each node last returned and that counted, in Unix seconds."""

    @property
    def gone(self) -> tuple[ClusterNode, ...]:
        """The last Node objects of nodes that lost theirs some minutes ago: their series end only now."""
        return tuple(node for _, node in self._gone.values())

    def have_ended(self, now: float, nodes: tuple[ClusterNode, ...] | None) -> bool:
        """Return whether a node has returned after minutes, unless it comes and goes all the time.

        `nodes` are all Node objects at this refresh.
        """
        if not nodes:
            # If they are unknown, or all are gone, all samples are requested again anyway.
            return False
        known = {node.name: node for node in nodes}
        gone = {name: (at, node) for name, (at, node) in self._gone.items() if abs(now - at) < _KEPT_SECONDS}
        self._gone = {name: one for name, one in gone.items() if name not in known}
        self._gone |= {name: (now, node) for name, node in self._nodes.items() if name not in known}
        self._nodes = known
        self._back_at = {name: at for name, at in self._back_at.items() if abs(now - at) < _COUNTS_AGAIN_SECONDS}
        back = (gone.keys() & known.keys()) - self._back_at.keys()
        self._back_at |= dict.fromkeys(back, now)
        return len(back) > 0
