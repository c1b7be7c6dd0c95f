"""Records the result of the last look-up of each rule's series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.metrics.rulebook.model import Rule


@dataclass(frozen=True, slots=True)
class LookUp:
    """The last look-up of one rule's series."""

    rule: Rule
    succeeded_at: float | None = None
    """Unix seconds of the last look-up that returned all series; None before the first one."""
    failure: str | None = None
    """Why the last look-up failed, in words that any client may read; None if it did not fail."""
