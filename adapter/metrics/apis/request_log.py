"""Records who requested which metric, when and how often, which shows whether an autoscaler reads it at all.

Every request for values is recorded, so a repeated one costs a dictionary look-up and takes no lock. The record is
bounded: the oldest requests that nobody repeats are dropped first. Only authorized requests are recorded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from adapter.foundation.time.timestamps import rfc3339
from adapter.metrics.readings.explain.explanation import ExplanationStep, Outcome

MOST_ASKED = 10_000
LONGEST_CHARACTERS = 512
"""Longest request that is recorded; no autoscaler uses longer names."""
MOST_SHOWN = 5
_MOST_MOVED = 16
"""How many repeated requests are examined at most, and kept, to find one to drop."""


class LoggedRequest(NamedTuple):
    """One kind of request: what a caller asks for."""

    group: str
    resource: str
    """The kind of object as the path spells it; empty for external metrics."""
    namespace: str | None
    metric: str
    caller: str


class _Times:
    """When and how often a request arrived. There is no lock: two simultaneous requests may be counted as one."""

    __slots__ = ("first", "last", "number", "queued")

    def __init__(self, now: float) -> None:
        self.first = self.last = self.queued = now
        self.number = 1


@dataclass(frozen=True, slots=True)
class Requester:
    """One caller, and when it requested one metric in one namespace."""

    name: str
    first: float
    """The time of the first request in Unix seconds."""
    last: float
    number: int


class RequestLog:
    """Records recent requests. Safe to use from many threads."""

    def __init__(self, most: int = MOST_ASKED, wall: Callable[[], float] = time.time) -> None:
        self._most = most
        self._wall = wall
        self._times: dict[LoggedRequest, _Times] = {}
        self._lock = threading.Lock()

    def note(self, asked: LoggedRequest) -> None:
        """Record a request."""
        times, now = self._times.get(asked), self._wall()
        if times is not None:
            times.last = now
            times.number += 1
        elif sum(len(part) for part in asked if part) <= LONGEST_CHARACTERS:
            with self._lock:
                self._make_room()
                self._times[asked] = _Times(now)

    def of(
        self, group: str, namespace: str | None, metric: str, is_meant: Callable[[str], bool] = lambda _: True
    ) -> list[Requester]:
        """Return who requested the metric in the namespace, the latest first; `is_meant` says which resources count."""
        with self._lock:
            known = list(self._times.items())
        found: dict[str, Requester] = {}
        for asked, times in known:
            if (asked.group, asked.namespace, asked.metric) == (group, namespace, metric) and is_meant(asked.resource):
                found[asked.caller] = _join_requester(found.get(asked.caller), asked.caller, times)
        return sorted(found.values(), key=lambda requester: requester.last, reverse=True)

    def __len__(self) -> int:
        return len(self._times)

    def _make_room(self) -> None:
        """Drop the oldest request; those that were repeated since move to the end of the queue, a few at a time."""
        for attempt in range(_MOST_MOVED):
            if len(self._times) < self._most:
                return
            oldest = next(iter(self._times))
            times = self._times.pop(oldest)
            if times.last > times.queued and attempt < _MOST_MOVED - 1:
                times.queued = times.last
                self._times[oldest] = times


def steps_of(requesters: list[Requester], now: float) -> Iterator[ExplanationStep]:
    """Yield the steps of an explanation that name the callers."""
    for requester in requesters[:MOST_SHOWN]:
        times = "once" if requester.number == 1 else f"{requester.number} times since {rfc3339(requester.first)}"
        detail = f"{requester.name} asked last {max(0.0, now - requester.last):.0f} s ago, {times}"
        yield ExplanationStep("asked", Outcome.OK, detail)
    if len(requesters) > MOST_SHOWN:
        yield ExplanationStep("asked", Outcome.INFO, f"and {len(requesters) - MOST_SHOWN} more before")
    if not requesters:
        yield ExplanationStep(
            "asked", Outcome.INFO, "no caller has asked this process for it, as far back as it remembers"
        )


def _join_requester(known: Requester | None, name: str, times: _Times) -> Requester:
    """Return a caller's record with these requests added; `known` is its record so far, None if there is none."""
    if known is None:
        return Requester(name, times.first, times.last, times.number)
    return Requester(name, min(known.first, times.first), max(known.last, times.last), known.number + times.number)
