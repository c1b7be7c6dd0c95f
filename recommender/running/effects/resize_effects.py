"""Passes container requests to their writer, for recommendations with the output `resize`, and keeps refusals."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, TypeAlias

from recommender.decisions.inputs import WriteRefusal
from recommender.decisions.policy_settings import Output
from recommender.outputs.pending_writes import PendingWrite, Resizing
from recommender.outputs.scale_results import ScaleResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.loop import Decision
    from recommender.decisions.record import TargetReference
    from recommender.outputs.scale_writer import ScaleWriter
    from recommender.outputs.write_attempt import ScaleOutcome

    _Place: TypeAlias = "tuple[str, TargetReference]"

QUIET_SECONDS: Final = 300.0
"""How long requests that are in place, or were refused, are not checked again: usage is not read more often."""


class RequestWriters:
    """Has requests written, and remembers the results. `refusals`, `settled` and `note` are for any thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` is monotonic."""
        self._clock = clock
        self._lock = threading.Lock()
        self._settled: dict[_Place, tuple[Resizing, float]] = {}
        """The requests that the last attempt found in place, or that were refused, with the time of the attempt."""
        self._refusals: dict[_Place, WriteRefusal] = {}

    def refusals(self) -> Mapping[_Place, WriteRefusal]:
        """Return why requests were not written, by recommendation and target."""
        with self._lock:
            return dict(self._refusals)

    def settled(self) -> Mapping[_Place, Resizing]:
        """Return the sizes that the last attempt found in place, by recommendation and target."""
        with self._lock:
            return {place: each for place, (each, _) in self._settled.items() if place not in self._refusals}

    def note(self, outcome: ScaleOutcome) -> None:
        """Record the outcome of an attempt to write."""
        write = outcome.write
        place = (write.recommendation, write.target)
        if write.resizing is None:
            return
        with self._lock:
            if outcome.result in {ScaleResult.UNCHANGED, ScaleResult.REFUSED}:
                self._settled[place] = (write.resizing, self._clock())
            elif outcome.result is ScaleResult.OK:
                self._settled.pop(place, None)
            if outcome.result is ScaleResult.REFUSED:
                self._refusals[place] = WriteRefusal(outcome.owner, outcome.message)
            elif outcome.result in {ScaleResult.UNCHANGED, ScaleResult.OK}:
                self._refusals.pop(place, None)

    def act(self, writer: ScaleWriter, configuration: Configuration, decisions: Sequence[Decision]) -> None:
        """Begin to carry out the decisions; return at once."""
        names = configuration.names_with(Output.RESIZE)
        writer.retain(names)
        wanted: dict[str, list[PendingWrite]] = {name: [] for name in names}
        places: set[_Place] = set()
        for write in (decision.writes for decision in decisions):
            if isinstance(write, PendingWrite) and write.recommendation in names:
                place = (write.recommendation, write.target)
                places.add(place)
                if not self._is_settled(place, write.resizing):
                    wanted[write.recommendation].append(write)
        for name, writes in wanted.items():
            writer.follow_writes(name, writes)
        self._keep(places)

    def forget(self) -> None:
        """Forget all results: another process leads, and may write other requests."""
        self._keep(set())

    def _is_settled(self, place: _Place, resizing: Resizing | None) -> bool:
        with self._lock:
            before = self._settled.get(place)
        return before is not None and before[0] == resizing and self._clock() - before[1] < QUIET_SECONDS

    def _keep(self, places: set[_Place]) -> None:
        with self._lock:
            self._settled = {place: each for place, each in self._settled.items() if place in places}
            self._refusals = {place: each for place, each in self._refusals.items() if place in places}
