"""The results of writing sizes, and what may have been sent at all, for the decisions that follow."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

from recommender.outputs.scale_results import ScaleResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.record import TargetReference
    from recommender.outputs.pending_writes import PendingWrite
    from recommender.outputs.write_attempt import ScaleOutcome

K = TypeVar("K")
V = TypeVar("V")


class WriteResults:
    """The latest result for each target, until a decision has used it. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: dict[str, dict[TargetReference, ScaleOutcome]] = {}
        self._sent: dict[str, dict[tuple[str, int], object]] = {}
        """A new object for each time that a write may have been sent, by the text of its target and its size."""

    def note_sending(self, write: PendingWrite) -> None:
        """Keep that a write may be sent from now on, whatever its result. This must be called before it is sent."""
        with self._lock:
            self._sent.setdefault(write.recommendation, {})[str(write.target), write.replicas] = object()

    def note(self, outcome: ScaleOutcome) -> None:
        """Keep a result; it replaces an older one, so that a failure counts only if its repetition also failed.

        A write that was not sent, or a server that was not reached, does not replace a success, since the nodes of that
        are on their way.
        """
        write = outcome.write
        with self._lock:
            known = self._outcomes.setdefault(write.recommendation, {})
            last = known.get(write.target)
            is_done = last is not None and last.result is ScaleResult.OK
            if not (is_done and (outcome.result is ScaleResult.FENCED or outcome.is_of_the_server)):
                known[write.target] = outcome

    def of(self, recommendation: str) -> Mapping[TargetReference, ScaleOutcome]:
        """Return the results for a recommendation."""
        with self._lock:
            return dict(self._outcomes.get(recommendation, {}))

    def sent_of(self, recommendation: str) -> Mapping[tuple[str, int], object]:
        """Return what may have been sent for a recommendation, by the text of its target and its size."""
        with self._lock:
            return dict(self._sent.get(recommendation, {}))

    def drop(
        self,
        recommendation: str,
        seen: Mapping[TargetReference, ScaleOutcome],
        sent: Mapping[tuple[str, int], object],
    ) -> None:
        """Forget results, and what was sent, that a decision has used; later ones stay."""
        with self._lock:
            _drop(self._outcomes, recommendation, seen)
            _drop(self._sent, recommendation, sent)

    def clear(self) -> None:
        """Forget everything: another process leads."""
        with self._lock:
            self._outcomes.clear()
            self._sent.clear()


def _drop(known: dict[str, dict[K, V]], recommendation: str, used: Mapping[K, V]) -> None:
    left = {key: one for key, one in known.pop(recommendation, {}).items() if used.get(key) is not one}
    if left:
        known[recommendation] = left
