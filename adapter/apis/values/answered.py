"""What the values of one API are before they become a response."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnswerValues:
    """An answer to a request for values."""

    body: bytes
    evaluated_at: float
    """Moment that its values are of, in unix seconds."""
    warnings: tuple[str, ...] = ()
    """What a person should know of it."""
