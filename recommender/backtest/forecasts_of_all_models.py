"""The rolling forecasts of all models on one series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.backtest.fits import CountedFits
from recommender.kinds.predictive.current_forecast import duration_text
from recommender.kinds.predictive.rolling_forecasts import RollingOptions, rolling_forecasts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recommender.backtest.report import FitCounts
    from recommender.child_processes.parent import Children
    from recommender.kinds.predictive.forecast import Forecasts, ForecastTask, Model
    from recommender.kinds.predictive.history import LoadHistory

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
) -> ModelRuns:
    """Return the rolling forecasts of each model that has enough history for at least one."""
    runs, notes, done = [], [], 0.0
    whole = sum(map(_weight, models))
    for model in models:
        options = RollingOptions()
        fits = CountedFits(children, history, options)

        def report(fitted: int, of: int, *, model: Model = model, done: float = done) -> None:
            show((done + _weight(model) * fitted / of) / whole, f"{model.name}, fit {fitted} of {of}")

        show(done / whole, model.name)
        forecasts = rolling_forecasts(model, history, task, options, fits.run, report)
        done += _weight(model)
        if np.isnan(forecasts.upper).all():
            notes.append(_lacking(model, history, fits.counts))
        else:
            runs.append(ModelRun(model.name, forecasts, fits.counts))
    return ModelRuns(tuple(runs), tuple(notes))


def _weight(model: Model) -> float:
    return _HEAVY if model.is_heavy else 1.0


def _lacking(model: Model, history: LoadHistory, fits: FitCounts) -> str:
    if history.span_seconds <= model.least_history_seconds:
        return (
            f"{model.name} does not take part: it needs {duration_text(model.least_history_seconds)} of history, "
            f"and the trace has {duration_text(history.span_seconds)}"
        )
    if fits.last_failure:
        return f"{model.name} does not take part: none of its fits succeeded; the last failure: {fits.last_failure}"
    return f"{model.name} does not take part: it has no forecast for this trace"
