"""Lets programs finish with a drained node before its machine is deleted, if an annotation of the node asks for it.

Such a program usually sets its annotation when the node joins, and takes it off once it has seen the taint of the
removal and has done its work. So the removal must begin although the annotation is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from recommender.kinds.cluster_size.node_groups.fields import text, texts
from recommender.kinds.cluster_size.scale_down.annotations import DELAY_DELETION

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

DELAY_SECONDS: Final = 120.0
"""How long annotations delay a deletion after the last pod has gone (`--node-deletion-delay-timeout`)."""


class DeletionDelays:
    """Remembers since when nodes have been drained. After a restart, the time begins anew."""

    def __init__(self) -> None:
        """Begin without nodes."""
        self._drained_at: dict[str, float] = {}

    def keep(self, names: Collection[str]) -> None:
        """Forget all other nodes."""
        self._drained_at = {name: at for name, at in self._drained_at.items() if name in names}

    def is_delayed(self, node: Mapping[str, Any], now: float) -> bool:
        """Return whether the deletion of a drained Node waits; `now` is monotonic."""
        since = self._drained_at.setdefault(text(node, "metadata", "name"), now)
        asks = any(key.startswith(DELAY_DELETION) for key in texts(node, "metadata", "annotations"))
        return asks and now - since < DELAY_SECONDS
