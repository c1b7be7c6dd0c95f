"""Counts the answers that a client gets: latencies of the good ones, and everything else as errors."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

_REASONS_KEPT = 20


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Counts and latencies of the measured time. Latencies are those of good answers, from the intended time on."""

    requests: int
    good: int
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    rate_per_second: float
    """Good answers a second."""
    client_delay_p99_ms: float | None
    """How late the client itself was to notice that a request was due; latencies include this, but the server is not at
    fault."""
    answer_age_max_seconds: float | None
    """The largest age of the values in answers, by their timestamps."""
    warm_up_errors: int
    cold_start_seconds: float
    """Seconds from the first request to the last one of the warm-up that had no good answer; 0 if all had one."""
    reasons: dict[str, int]
    """The texts of a few errors and their counts, warm-up included."""

    @property
    def errors(self) -> int:
        """The number of requests with a wrong answer or none."""
        return self.requests - self.good


class Tally:
    """Counts each request once; requests that were intended before `measure_from` belong to the warm-up.

    Moments are monotonic seconds.
    """

    def __init__(self, start_at: float, measure_from: float) -> None:
        self._start_at = start_at
        self._measure_from = measure_from
        self._latencies: list[float] = []
        self._delays: list[float] = []
        self._oldest: float | None = None
        self._failed = 0
        self._warm_up_errors = 0
        self._cold_start_seconds = 0.0
        self._reasons: Counter[str] = Counter()

    def noticed(self, intended: float, now: float) -> None:
        """Record when the client noticed that a request was due."""
        if intended >= self._measure_from:
            self._delays.append(now - intended)

    def answered(self, intended: float, latency: float, age: float) -> None:
        """Record a good answer and the age of its values, in seconds."""
        if intended >= self._measure_from:
            self._latencies.append(latency)
            self._oldest = age if self._oldest is None else max(age, self._oldest)

    def failed(self, intended: float, reason: str) -> None:
        """Record a wrong answer, or that there was none."""
        if intended >= self._measure_from:
            self._failed += 1
        else:
            self._warm_up_errors += 1
            self._cold_start_seconds = max(self._cold_start_seconds, intended - self._start_at)
        if reason in self._reasons or len(self._reasons) < _REASONS_KEPT:
            self._reasons[reason] += 1

    def outcome(self, seconds: float) -> Outcome:
        """Return the outcome; `seconds` is the measured time."""
        latencies, delays = sorted(self._latencies), sorted(self._delays)
        return Outcome(
            requests=len(latencies) + self._failed,
            good=len(latencies),
            p50_ms=_milliseconds(quantile(latencies, 0.5)),
            p99_ms=_milliseconds(quantile(latencies, 0.99)),
            max_ms=_milliseconds(latencies[-1] if latencies else None),
            rate_per_second=round(len(latencies) / seconds, 1),
            client_delay_p99_ms=_milliseconds(quantile(delays, 0.99)),
            answer_age_max_seconds=None if self._oldest is None else round(self._oldest, 1),
            warm_up_errors=self._warm_up_errors,
            cold_start_seconds=round(self._cold_start_seconds, 1),
            reasons=dict(self._reasons),
        )


def quantile(ascending: Sequence[float], share: float) -> float | None:
    """Return the smallest value that at least this share of the values does not exceed; None if there are no values."""
    return ascending[max(0, math.ceil(share * len(ascending)) - 1)] if ascending else None


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 2)
