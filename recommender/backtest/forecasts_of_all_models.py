"""The rolling forecasts of all models on one series; heavy models are fitted in child processes with a time budget.

A child takes seconds to start and to import its libraries, so it makes several fits in a row for the next refits, each
to the data that is known at its own step. If such a series of fits exceeds its budget, its fits are made one by one,
and only the fits that fail are lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recommender.backtest.report import FitCounts
from recommender.child_processes.child_errors import ChildError
from recommender.child_processes.parent import ChildLimits, Children
from recommender.kinds.predictive.current_forecast import duration_text
from recommender.kinds.predictive.rolling_forecasts import RollingOptions, known_before, refit_steps, rolling_forecasts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recommender.kinds.predictive.forecast import Forecasts, ForecastTask, Model
    from recommender.kinds.predictive.history import LoadHistory

_FIT_SECONDS: Final = 60.0
"""The budget of one fit, including the start of its process; fits that one child makes in a row share one budget."""
_FITS_AT_ONCE: Final = 8


def _fit_each(model: Model, history: LoadHistory, starts: Sequence[int], task: ForecastTask) -> list[Any]:
    """Return the parameters of a fit to the data known at each of the `starts`. Runs in a child process."""
    return [model.fit(known_before(history, start, task), task) for start in starts]


class _CountedFits:
    """Makes the fits of one model to one trace, and counts them."""

    def __init__(self, children: Children, history: LoadHistory, options: RollingOptions) -> None:
        self._children = children
        self._history = history
        self._options = options
        self._limits = ChildLimits(seconds=_FIT_SECONDS)
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
        start = history.first + history.steps - self._history.first
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
        later = [int(step) for step in refit_steps(model, self._history, task, self._options) if step >= start]
        starts = later[:_FITS_AT_ONCE]
        # A child gets only what its fits take.
        oldest = start - known_before(self._history, start, task).steps
        known, ends = self._history.between(oldest, starts[-1]), [each - oldest for each in starts]
        try:
            found = self._children.run(model.name, _fit_each, (model, known, ends, task), self._limits)
        except ChildError:
            self._alone.update(starts)
        else:
            self._ahead.update(zip(starts, found, strict=True))

    def _count(self, *, failed: bool, reason: str = "") -> None:
        counts = self.counts
        self.counts = FitCounts(counts.done + (not failed), counts.failed + failed, reason or counts.last_failure)


_HEAVY: Final = 20.0
"""How much longer a heavy model takes than a light one, used only for the progress."""


@dataclass(frozen=True, slots=True)
class ModelRun:
    """The forecasts of a model over the whole trace."""

    name: str
    forecasts: Forecasts
    fits: FitCounts


@dataclass(frozen=True, slots=True)
class ModelRuns:
    """The runs of all models that could take part, and a sentence about each of the other models."""

    runs: tuple[ModelRun, ...]
    notes: tuple[str, ...]


def run_models(
    models: Sequence[Model],
    history: LoadHistory,
    task: ForecastTask,
    children: Children,
    show: Callable[[float, str], None],
    stretch: float = 1.0,
) -> ModelRuns:
    """Return the rolling forecasts of each model that has enough history for at least one.

    The times of history and task were multiplied by `stretch`.
    """
    runs, notes, done = [], [], 0.0
    whole = sum(map(_weight, models))
    for model in models:
        options = RollingOptions()
        fits = _CountedFits(children, history, options)

        def report(fitted: int, of: int, *, model: Model = model, done: float = done) -> None:
            show((done + _weight(model) * fitted / of) / whole, f"{model.name}, fit {fitted} of {of}")

        show(done / whole, model.name)
        forecasts = rolling_forecasts(model, history, task, options, fits.run, report)
        done += _weight(model)
        if np.isnan(forecasts.upper).all():
            notes.append(_absence_reason(model, history, task, fits.counts, stretch))
        else:
            runs.append(ModelRun(model.name, forecasts, fits.counts))
    return ModelRuns(tuple(runs), tuple(notes))


def _weight(model: Model) -> float:
    return _HEAVY if model.is_heavy else 1.0


def _absence_reason(model: Model, history: LoadHistory, task: ForecastTask, fits: FitCounts, stretch: float) -> str:
    def text(seconds: float) -> str:
        # A rounding error would turn 14 days into 13.9.
        return duration_text(round(seconds / stretch, 3))

    needed = f"{model.name} does not take part: it needs {text(model.least_history_seconds)} of history, and"
    if history.span_seconds <= model.least_history_seconds:
        return f"{needed} the trace has {text(history.span_seconds)}"
    if task.history_seconds < model.least_history_seconds:
        return f"{needed} `history` is {text(task.history_seconds)}"
    if fits.last_failure:
        return f"{model.name} does not take part: none of its fits succeeded; the last failure: {fits.last_failure}"
    return f"{model.name} does not take part: it has no forecast for this trace"
