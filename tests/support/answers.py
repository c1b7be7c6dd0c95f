"""Answers of Prometheus whose bytes a test controls."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.answers.decoding import SeriesAnswer

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits


def read_series(selector: str, body: bytes | bytearray, *, limits: AnswerLimits) -> SeriesAnswer:
    """Return the answer of a successful `/api/v1/series` with this body."""
    return SeriesAnswer(selector, lambda: nullcontext((bytes(body),)), limits)
