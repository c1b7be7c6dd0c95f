"""How the last look-up of each rule's series went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.rulebook.model import Rule


@dataclass(frozen=True, slots=True)
class LookUp:
    """One rule, and what is known of its series."""

    rule: Rule
    succeeded_at: float | None = None
    """Unix seconds of the last look-up that brought all series; None: none did yet."""
    failure: str | None = None
    """Why the last one did not."""
