"""How the last poll went, for `/last-poll` and for `--max-sync-failures`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from adapter.service.server.plain import PlainAnswer
from recommender.decisions.notes import note_of
from recommender.decisions.record import Status
from recommender.outputs.results import ScaleResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recommender.decisions.record import Record
    from recommender.outputs.scale import ScaleOutcome


class PollState:
    """Counts consecutive polls that failed: a decision without fresh inputs, or a scale call that was not possible.

    A ConfigMap that cannot be used is shown, as by cluster-proportional-autoscaler, but not counted: the last good
    parameters are in use, and a process that gives up would lose them.
    """

    def __init__(self, most_failures: int, give_up: Callable[[str], None]) -> None:
        """`give_up` is called with the reason after `most_failures` consecutive polls have failed; 0: never."""
        self._most_failures = most_failures
        self._give_up = give_up
        self._lock = threading.Lock()
        self._scale_failures: dict[object, str] = {}
        self._failure = ""
        self._failures = 0

    def scaled(self, outcome: ScaleOutcome) -> None:
        """Take in what became of a scale call."""
        with self._lock:
            if outcome.result is ScaleResult.ERROR:
                self._scale_failures[outcome.wish.target] = outcome.message
            else:
                self._scale_failures.pop(outcome.wish.target, None)

    def polled(self, records: Sequence[Record]) -> None:
        """Take in the records of a poll."""
        with self._lock:
            reasons = [record.message for record in records if record.status is not Status.OK]
            reasons += self._scale_failures.values()
            self._failure = "; ".join([*reasons, *filter(None, map(note_of, records))])
            self._failures = self._failures + 1 if reasons else 0
            has_enough = 0 < self._most_failures <= self._failures
            failure = f"{self._failures} consecutive polls have failed: {self._failure}"
        if has_enough:
            self._give_up(failure)

    def answer(self, _query: str) -> PlainAnswer:
        """Answer `/last-poll`: 500 and the reason if the last poll failed, or did not use the present ConfigMap."""
        with self._lock:
            failure = self._failure
        return PlainAnswer(500, f"{failure}\n".encode()) if failure else PlainAnswer(200, b"ok\n")
