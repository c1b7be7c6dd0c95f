"""Decides the answer to the probe from the last reading, its age and the last failure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.readiness.limit import ConnectionLimit


@dataclass(frozen=True, slots=True)
class ReadinessRules:
    """The settings that determine a verdict."""

    metric: str
    """The metric as the user wrote it."""
    limit: ConnectionLimit
    stale_after_seconds: float
    """The age in seconds above which a value counts as unknown."""


@dataclass(frozen=True, slots=True)
class KnownLoad:
    """The known load. Times are in seconds of the monotonic clock."""

    connections: float | None = None
    """The last value that could be read; None if there is none."""
    read_at: float = 0.0
    """When the read of this value began."""
    is_full: bool = False
    """Whether the pod was full according to the last value. A failed read does not change it."""
    failure: str = "the metric has not been read yet"
    """Why the newest read failed; empty if it succeeded."""

    def after_value(self, limit: ConnectionLimit, connections: float, read_at: float) -> KnownLoad:
        """Return the known load after a read that succeeded."""
        return KnownLoad(connections, read_at, limit.is_full(connections, was_full=self.is_full), "")

    def after_failure(self, reason: str) -> KnownLoad:
        """Return the known load after a read that failed; value and time stay the same."""
        return replace(self, failure=reason)


@dataclass(frozen=True, slots=True)
class ReadinessVerdict:
    """Whether the pod should get new connections, and the reason in one line."""

    is_ready: bool
    reason: str
    connections: float | None
    """The number of connections on which the verdict is based; None if it is unknown or does not matter."""


def readiness_verdict(rules: ReadinessRules, known: KnownLoad, now: float) -> ReadinessVerdict:
    """Return the verdict at `now`, in seconds of the monotonic clock.

    A pod whose load is unknown is ready, since a common fault would otherwise leave the Service without endpoints.
    """
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
