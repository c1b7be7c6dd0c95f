"""The results of writing sizes, for the decisions that follow."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.record import TargetReference
    from recommender.outputs.write_attempt import ScaleOutcome


class WriteResults:
    """The latest result for each target, until a decision has used it. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: dict[str, dict[TargetReference, ScaleOutcome]] = {}

    def note(self, outcome: ScaleOutcome) -> None:
        """Keep a result; it replaces an older one, so that a failure counts only if its repetition also failed."""
        with self._lock:
            self._outcomes.setdefault(outcome.write.recommendation, {})[outcome.write.target] = outcome

    def of(self, recommendation: str) -> Mapping[TargetReference, ScaleOutcome]:
        """Return the results for a recommendation."""
        with self._lock:
            return dict(self._outcomes.get(recommendation, {}))

    def drop(self, recommendation: str, seen: Mapping[TargetReference, ScaleOutcome]) -> None:
        """Forget results that a decision has used; later ones stay."""
        with self._lock:
            left = {
                target: outcome
                for target, outcome in self._outcomes.pop(recommendation, {}).items()
                if seen.get(target) is not outcome
            }
            if left:
                self._outcomes[recommendation] = left

    def clear(self) -> None:
        """Forget everything: another process leads."""
        with self._lock:
            self._outcomes.clear()
