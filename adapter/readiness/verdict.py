"""Decides the answer to the probe from the last reading, its age and the last failure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.readiness.limit import ConnectionLimit


@dataclass(frozen=True, slots=True)
class ReadinessRules:
    """The settings by which a verdict is reached."""

    metric: str
    """The metric as the user wrote it."""
    limit: ConnectionLimit
    stale_after_seconds: float
    """Age from which a value no longer counts."""


@dataclass(frozen=True, slots=True)
class KnownLoad:
    """The known load. Times are monotonic seconds."""

    connections: float | None = None
    """The last value that could be read."""
    read_at: float = 0.0
    """When that read began."""
    is_full: bool = False
    """Whether the pod was full by the last value. It is kept after failures."""
    failure: str = "the metric has not been read yet"
    """Why the newest read failed; empty if it succeeded."""

    def after_value(self, limit: ConnectionLimit, connections: float, read_at: float) -> KnownLoad:
        """Return what is known after a read that succeeded."""
        return KnownLoad(connections, read_at, limit.is_full(connections, was_full=self.is_full), "")

    def after_failure(self, reason: str) -> KnownLoad:
        """Return what is known after a read that failed."""
        return replace(self, failure=reason)


@dataclass(frozen=True, slots=True)
class ReadinessVerdict:
    """Whether the pod takes new connections, and why, in one line."""

    is_ready: bool
    reason: str
    connections: float | None
    """The number of connections behind the verdict; None if it is unknown or does not matter."""


def readiness_verdict(rules: ReadinessRules, known: KnownLoad, now: float) -> ReadinessVerdict:
    """Return the verdict at a time. A pod whose load is unknown is ready: otherwise, one fault empties the Service."""
    age = now - known.read_at
    if known.connections is None:
        return _ready_without_value(rules, known.failure)
    if age > rules.stale_after_seconds:
        return _ready_without_value(rules, f"no value for {age:.0f} s: {known.failure or 'a read has not ended'}")
    note = f" ({age:.1f} s old: {known.failure})" if known.failure else ""
    return ReadinessVerdict(not known.is_full, _compare_with_limit(rules, known) + note, known.connections)


def _ready_without_value(rules: ReadinessRules, why: str) -> ReadinessVerdict:
    reason = f"ready, because {rules.metric} is unknown: {why}"
    return ReadinessVerdict(is_ready=True, reason=reason, connections=None)


def _compare_with_limit(rules: ReadinessRules, known: KnownLoad) -> str:
    limit = rules.limit
    load = f"{rules.metric} is {known.connections:.15g}"
    if not known.is_full:
        return f"ready: {load}, below the limit of {limit.full_at}"
    again = f"ready again below {limit.resume_below:.15g}"
    return f"not ready: {load}, the limit is {limit.full_at}; {again}"
