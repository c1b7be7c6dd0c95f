"""The common result of the APIs that serve values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnswerValues:
    """An answer to a request for values."""

    body: bytes
    evaluated_at: float
    """The time of its values in Unix seconds."""
    warnings: tuple[str, ...] = ()
    """Sentences for people who read the answer."""
    gzipped: bytes | None = None
    """The compressed body; None if it has not been compressed."""
