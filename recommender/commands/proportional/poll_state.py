"""Records the result of the last poll, for `/last-poll` and for `--max-sync-failures`."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.counts import agreeing, count_of
from adapter.foundation.service.server.plain_port.plain_answers import PlainAnswer
from recommender.decisions.record import Record, Status, TargetAction, TargetReference
from recommender.outputs.scale_results import ScaleResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recommender.outputs.write_attempt import ScaleOutcome


_TOLERATED_PERIODS: Final = 0.5
"""Polls do not take equally long, so some of them end a little sooner after the former one."""


class PollState:
    """Counts consecutive polls that failed: because of a missing input, a missing target or a failed scale call."""

    def __init__(
        self,
        most_failures: int,
        poll_seconds: float,
        give_up: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`give_up` is called with a reason after `most_failures` consecutive failed polls, and never if that is 0.

        It is not called sooner than so many regular polls take: further polls follow each change of a node, as many as
        one a second while nodes arrive.
        """
        self._most_failures = most_failures
        self._least_seconds = (most_failures - 1 - _TOLERATED_PERIODS) * poll_seconds
        self._give_up = give_up
        self._clock = clock
        self._lock = threading.Lock()
        self._scale_failures: dict[TargetReference, str] = {}
        self._failure = ""
        self._failures = 0
        self._failing_since = 0.0
        self._awaits_nodes = False
        self._former_parameters = ""

    def record_scale_call(self, outcome: ScaleOutcome) -> None:
        """Record the result of a scale call."""
        with self._lock:
            if outcome.result is ScaleResult.ERROR:
                self._scale_failures[outcome.write.target] = outcome.message
            else:
                self._scale_failures.pop(outcome.write.target, None)

    def uses_former_parameters(self, why: str) -> None:
        """Record why the parameters in use are not those of the current ConfigMap; `why` is empty if they are.

        `/last-poll` shows the reason, as in the original program. It does not count towards `most_failures`, since a
        process that ends would lose the last good parameters.
        """
        with self._lock:
            self._former_parameters = why

    def awaits_nodes(self, *, is_awaited: bool) -> None:
        """Record whether the next poll waits for a list of nodes that is under way.

        `/last-poll` shows that, but it does not count: the original program polls only after its first list, and a
        process that ends begins the list anew.
        """
        with self._lock:
            self._awaits_nodes = is_awaited

    def record_poll(self, records: Sequence[Record]) -> None:
        """Record the outcome of a poll."""
        with self._lock:
            reasons = [reason for record in records for reason in _failures_of(record)]
            # A call that is no longer wanted is not repeated, so nothing else would end its failure.
            wanted = _scaled_by(records)
            self._scale_failures = {target: why for target, why in self._scale_failures.items() if target in wanted}
            reasons += self._scale_failures.values()
            self._failure = "; ".join(reasons)
            has_enough = self._count_failure(is_failure=bool(reasons))
        if has_enough:
            polls = f"{count_of(self._failures, 'consecutive poll')} {agreeing(self._failures, 'has', 'have')} failed"
            self._give_up(f"{polls}: {self._failure}")

    def _count_failure(self, *, is_failure: bool) -> bool:
        """Count a poll; return whether so many have failed that the process ends."""
        now = self._clock()
        if not is_failure:
            self._failures = 0
        if not is_failure or self._awaits_nodes:
            return False
        self._failures += 1
        if self._failures == 1:
            self._failing_since = now
        return 0 < self._most_failures <= self._failures and now - self._failing_since >= self._least_seconds

    def answer(self) -> PlainAnswer:
        """Answer `/last-poll`: 500 and the reason if the last poll failed."""
        with self._lock:
            failure = "; ".join(filter(None, (self._failure, self._former_parameters)))
        return PlainAnswer(500, f"{failure}\n".encode()) if failure else PlainAnswer(200, b"ok\n")


def _scaled_by(records: Sequence[Record]) -> frozenset[TargetReference]:
    """Return the targets for which the records request a scale call."""
    outcomes = (outcome for record in records for outcome in record.targets)
    return frozenset(outcome.target for outcome in outcomes if outcome.action is TargetAction.SCALE)


def _failures_of(record: Record) -> list[str]:
    """Return why a decision failed. A pause or a rollout that holds the value is not a failure."""
    # Steps are there if and only if the value was calculated from fresh inputs.
    if record.status is not Status.OK and not record.steps:
        return [record.message]
    return [outcome.message for outcome in record.targets if outcome.current_replicas is None]
