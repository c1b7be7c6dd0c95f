"""The events of a replay in order: the recorded ones, and those that a policy causes."""

from __future__ import annotations

import heapq
import math
from enum import IntEnum, auto
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recommender.replay.cluster.replay_facts import Scene

Event: TypeAlias = tuple[float, int, int]
"""The time of an event, its `Happening` as a number, and the number of the pod, the node or the slot."""


class Happening(IntEnum):
    """The types of events, in the order in which events of the same moment are processed."""

    POD_GONE = auto()
    NODE_GONE = auto()
    NODE_CAME = auto()
    NODE_READY = auto()
    SPOT_DUE = auto()
    """A requested spot machine that was unavailable arrives, is waited for again, or is given up."""
    INTERRUPTED = auto()
    POD_CAME = auto()
    FORECAST = auto()
    GROW = auto()
    LOOK = auto()


def events_of(scene: Scene) -> tuple[Event, ...]:
    """Return the recorded events of pods, and of nodes outside all groups, sorted by time."""
    recording, found = scene.recording, []
    for number, pod in enumerate(recording.pods):
        if not scene.replayed[pod.kind] or (pod.gone is not None and pod.gone <= recording.start):
            continue
        found.append((max(pod.created, recording.start), Happening.POD_CAME, number))
        if pod.gone is not None and pod.gone < recording.end:
            found.append((pod.gone, Happening.POD_GONE, number))
    for number, gone in _stays_outside(scene).items():
        came = recording.nodes[number].came
        if came > recording.start:
            found.append((came, Happening.NODE_CAME, number))
        if gone is not None and gone < recording.end:
            found.append((gone, Happening.NODE_GONE, number))
    return tuple(sorted((time, int(what), number) for time, what, number in found))


def _stays_outside(scene: Scene) -> dict[int, float | None]:
    """Return when each node outside all groups ends, by its first number; changed facts give it another number."""
    found: dict[int, float | None] = {}
    first: dict[str, int] = {}
    for number, one in enumerate(scene.recording.nodes):
        name = one.node.name
        if scene.node_kinds[scene.kind_of_node[name]].group:
            continue
        if name not in first or found[first[name]] != one.came:
            first[name] = number
        found[first[name]] = one.gone
    return found


class Agenda:
    """The future events that a policy causes."""

    def __init__(self) -> None:
        self._coming: list[Event] = []

    def add(self, at: float, what: Happening, number: int = 0) -> None:
        """Add an event that happens at `at`."""
        heapq.heappush(self._coming, (at, what, number))

    def moments(self, past: Sequence[Event], end: float) -> Iterator[tuple[float, Sequence[Event]]]:
        """Yield each moment before `end` with all of its events: the added ones, and the recorded ones in `past`."""
        coming, at, total = self._coming, 0, len(past)
        while at < total or coming:
            now = past[at][0] if at < total else math.inf
            if coming and coming[0][0] < now:
                now = coming[0][0]
            if now >= end:
                return
            begin = at
            while at < total and past[at][0] == now:
                at += 1
            batch = past[begin:at]
            if coming and coming[0][0] == now:
                batch = self._with_coming(now, batch)
            yield now, batch

    def _with_coming(self, now: float, batch: Sequence[Event]) -> Sequence[Event]:
        """Return the events of a moment in order, after removing those that were added."""
        coming, found = self._coming, list(batch)
        while coming and coming[0][0] == now:
            found.append(heapq.heappop(coming))
        return sorted(found)
