"""Limits how fast capacity is lowered."""

from __future__ import annotations

import math
from typing import Final

DECAY_SECONDS: Final = 10.0
"""The time in which the share `decay` may be removed, regardless of the poll interval and the step."""


def kept_ratio(decay_ratio: float | None, session_seconds: float | None, elapsed_seconds: float) -> float:
    """Return the least share of the capacity that must be kept after this time; 0 without a limit.

    `session_seconds` is None if no sessions are open, or if their length is unknown. While they are open, capacity is
    lowered no faster than they end: by the share `1 - exp(-elapsed_seconds / session_seconds)`.
    """
    kept = 0.0 if decay_ratio is None else (1 - decay_ratio) ** (elapsed_seconds / DECAY_SECONDS)
    if session_seconds is not None:
        kept = max(kept, math.exp(-elapsed_seconds / session_seconds))
    return kept
