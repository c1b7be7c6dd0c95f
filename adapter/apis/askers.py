"""Who asked for which metric, when, and how often: for whoever wonders whether an autoscaler reads it at all.

Noted with every request for values, so it costs a look-up in a dictionary and takes no lock where a request was seen
before. It is bounded: of new requests the oldest that nobody repeats make room. Only callers come here that may read
what they ask for.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from adapter.readings.explain.explanation import ExplanationStep, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_ASKED = 10_000
LONGEST_CHARACTERS = 512
"""Of what is noted; a request that is longer is not: nobody's autoscaler has such names."""
MOST_TOLD = 5
_MOST_MOVED = 16
"""Requests that are repeated and stay, looked at for one that goes."""


class RequestLog(NamedTuple):
    """What somebody asks for."""

    group: str
    resource: str
    """As the path says it; empty for external metrics."""
    namespace: str | None
    metric: str
    caller: str


class _Times:
    """When it was asked for. Not guarded by a lock: two threads at one moment may count one."""

    __slots__ = ("first", "last", "number", "queued")

    def __init__(self, now: float) -> None:
        self.first = self.last = self.queued = now
        self.number = 1


@dataclass(frozen=True, slots=True)
class Asker:
    """One caller, and when it asked for one metric in one namespace."""

    name: str
    first: float
    """Unix seconds."""
    last: float
    number: int


class Askers:
    """Remembers the requests of the last while. Safe to use from many threads."""

    def __init__(self, most: int = MOST_ASKED, wall: Callable[[], float] = time.time) -> None:
        self._most = most
        self._wall = wall
        self._times: dict[RequestLog, _Times] = {}
        self._lock = threading.Lock()

    def note(self, asked: RequestLog) -> None:
        """Count a request in."""
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
    ) -> list[Asker]:
        """Return who asked for the metric in the namespace, the last first; `is_meant` says which kinds count."""
        with self._lock:
            known = list(self._times.items())
        found: dict[str, Asker] = {}
        for asked, times in known:
            if (asked.group, asked.namespace, asked.metric) == (group, namespace, metric) and is_meant(asked.resource):
                found[asked.caller] = _joined(found.get(asked.caller), asked.caller, times)
        return sorted(found.values(), key=lambda asker: asker.last, reverse=True)

    def __len__(self) -> int:
        return len(self._times)

    def _make_room(self) -> None:
        """Let the oldest go; those that were asked for again meanwhile get to the end of the line, a few at a time."""
        for attempt in range(_MOST_MOVED):
            if len(self._times) < self._most:
                return
            oldest = next(iter(self._times))
            times = self._times.pop(oldest)
            if times.last > times.queued and attempt < _MOST_MOVED - 1:
                times.queued = times.last
                self._times[oldest] = times


def steps_of(askers: list[Asker], now: float) -> Iterator[ExplanationStep]:
    """Yield who asked, for an explanation."""
    for asker in askers[:MOST_TOLD]:
        times = "once" if asker.number == 1 else f"{asker.number} times since {_moment(asker.first)}"
        told = f"{asker.name} asked last {max(0.0, now - asker.last):.0f} s ago, {times}"
        yield ExplanationStep("asked", Outcome.OK, told)
    if len(askers) > MOST_TOLD:
        yield ExplanationStep("asked", Outcome.INFO, f"and {len(askers) - MOST_TOLD} others before")
    if not askers:
        yield ExplanationStep(
            "asked", Outcome.INFO, "nobody has asked this process for it, as far back as it remembers"
        )


def _joined(known: Asker | None, name: str, times: _Times) -> Asker:
    """Return one asker for several spellings of one kind."""
    if known is None:
        return Asker(name, times.first, times.last, times.number)
    return Asker(name, min(known.first, times.first), max(known.last, times.last), known.number + times.number)


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
