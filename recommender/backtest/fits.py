"""Fits of models: light ones in this process, heavy ones in child processes with a time budget.

A child takes seconds to start and to import its libraries, so it makes several fits in a row for the next refits, each
to the data that is known at its own step. If such a series of fits exceeds its budget, its fits are made one by one,
and only the fits that fail are lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from recommender.backtest.report import FitCounts
from recommender.child_processes.child_errors import ChildError
from recommender.child_processes.parent import ChildLimits, Children
from recommender.kinds.predictive.rolling_forecasts import RollingOptions, refit_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.predictive.forecast import ForecastTask, Model
    from recommender.kinds.predictive.history import LoadHistory

FIT_SECONDS: Final = 60.0
"""The budget of one fit, including the start of its process; fits that one child makes in a row share one budget."""
FITS_AT_ONCE: Final = 8


def fit_each(model: Model, history: LoadHistory, starts: Sequence[int], task: ForecastTask) -> list[Any]:
    """Return the parameters of a fit to the data known at each of the `starts`. Runs in a child process."""
    return [model.fit(history.until(start), task) for start in starts]


class CountedFits:
    """Makes the fits of one model to one trace, and counts them."""

    def __init__(
        self, children: Children, history: LoadHistory, options: RollingOptions, seconds: float = FIT_SECONDS
    ) -> None:
        """`seconds` is the budget of a fit in a child."""
        self._children = children
        self._history = history
        self._options = options
        self._limits = ChildLimits(seconds=seconds)
        self._ahead: dict[int, Any] = {}
        """Parameters of fits that a child has already made, by step."""
        self._alone: set[int] = set()
        """Steps of fits that are made one by one."""
        self.counts = FitCounts()

    def run(self, model: Model, history: LoadHistory, task: ForecastTask) -> Any:  # noqa: ANN401 - each model has its own parameters
        """Return the fitted parameters; None if the fit failed, so that the last parameters stay in use."""
        if not model.is_heavy:
            self._count(failed=False)
            return model.fit(history, task)
        start = history.steps
        if start not in self._ahead and start not in self._alone:
            self._fit_ahead(model, start, task)
        if start in self._ahead:
            self._count(failed=False)
            return self._ahead.pop(start)
        try:
            found = self._children.run(model.name, model.fit, (history, task), self._limits)
        except ChildError as error:
            self._count(failed=True, reason=str(error))
            return None
        self._count(failed=False)
        return found

    def _fit_ahead(self, model: Model, start: int, task: ForecastTask) -> None:
        """Let a child make this fit and the next ones; if the child fails, mark them all to be made one by one."""
        later = [int(step) for step in refit_steps(model, self._history, self._options) if step >= start]
        starts = later[:FITS_AT_ONCE]
        known = self._history.until(starts[-1])
        try:
            found = self._children.run(model.name, fit_each, (model, known, starts, task), self._limits)
        except ChildError:
            self._alone.update(starts)
        else:
            self._ahead.update(zip(starts, found, strict=True))

    def _count(self, *, failed: bool, reason: str = "") -> None:
        counts = self.counts
        self.counts = FitCounts(counts.done + (not failed), counts.failed + failed, reason or counts.last_failure)
