"""Fits of models: light ones here, heavy ones in a child process with a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapter.service.children import ChildError, ChildLimits
from recommender.backtest.report import FitCounts

if TYPE_CHECKING:
    from adapter.service.children import Children
    from recommender.predictive.forecast import ForecastTask, Model
    from recommender.predictive.history import LoadHistory

FIT_SECONDS: Final = 60.0
"""The budget of one fit, with the start of its process."""


class CountedFits:
    """Runs the fits of one model, and counts them."""

    def __init__(self, children: Children, seconds: float = FIT_SECONDS) -> None:
        """`seconds` is the budget of a fit in a child."""
        self._children = children
        self._limits = ChildLimits(seconds=seconds)
        self.counts = FitCounts()

    def run(self, model: Model, history: LoadHistory, task: ForecastTask) -> Any:  # noqa: ANN401 - each model has its own parameters
        """Return the parameters; None where the fit failed, so that the last ones stay in use."""
        done, failed = self.counts.done + 1, self.counts.failed
        if not model.is_heavy:
            self.counts = FitCounts(done, failed, self.counts.last_failure)
            return model.fit(history, task)
        try:
            found = self._children.run(model.name, model.fit, (history, task), self._limits)
        except ChildError as error:
            self.counts = FitCounts(self.counts.done, failed + 1, str(error))
            return None
        self.counts = FitCounts(done, failed, self.counts.last_failure)
        return found
