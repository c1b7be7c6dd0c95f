"""Tries models on many series, a few at a time; fits are shared, and each series has its own verdict (pure).

Forecasts of former days are not kept, since those of all models for thousands of series would take gigabytes. They are
made again from the history and from the fits of those days, which all series share; the result is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from adapter.foundation.objects.grouping import group_values
from recommender.kinds.predictive.current_forecast import lacks_history
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory
from recommender.kinds.predictive.learning import (
    LEAST_HISTORY_SECONDS,
    SERIES_AT_ONCE,
    JudgingTerms,
    ModelTrial,
    replayed_from,
    verdicts,
)
from recommender.kinds.predictive.models.table import model_named
from recommender.kinds.predictive.rolling_forecasts import RollingOptions, refit_steps, rolling_forecasts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from recommender.kinds.predictive.arrays import IntArray
    from recommender.kinds.predictive.forecast import ForecastTask, Model
    from recommender.kinds.predictive.learning import SeriesVerdict

_LONG_BEFORE_SECONDS: Final = 3 * DAY_SECONDS
"""If a history begins this much earlier than a record, no forecast of the record depends on where the history
begins."""


@dataclass(frozen=True, slots=True)
class SharedFit:
    """A model whose parameters all series share, with its fits of the last days and its current fit."""

    numbers: tuple[int, ...]
    """The step from which each of the fits served, counted from the Unix epoch; ascending, the newest fit last."""
    fits: tuple[Any, ...]

    @property
    def parameters(self) -> Any:  # noqa: ANN401 - each model has its own parameters
        """Return the parameters of the newest fit."""
        return self.fits[-1]

    def known_at(self, number: int) -> Any:  # noqa: ANN401 - each model has its own parameters
        """Return the parameters that were known at a step; None if there were none yet."""
        place = int(np.searchsorted(self.numbers, number, side="right")) - 1
        return self.fits[place] if place >= 0 else None


def shared_fits(names: Sequence[str], history: LoadHistory, task: ForecastTask) -> dict[str, SharedFit]:
    """Return the fits of models by name: those on the days that records cover, each to the history until then.

    The last fit is to the whole history. A model is left out if too little is known to fit it. Models that are fitted
    in the same way share their fits.
    """
    return _fits(names, history, task, replayed_from(history))


def newest_fits(names: Sequence[str], history: LoadHistory, task: ForecastTask) -> dict[str, SharedFit]:
    """Return only the newest fits of models to a history; they are enough to continue with an earlier choice."""
    return _fits(names, history, task, history.steps)


def _fits(names: Sequence[str], history: LoadHistory, task: ForecastTask, first: int) -> dict[str, SharedFit]:
    found: dict[str, SharedFit] = {}
    made: dict[object, SharedFit] = {}
    for name in names:
        model = model_named(name)
        if model.fit not in made:
            starts = [*refit_steps(model, history, task, RollingOptions(first_step=first)).tolist(), history.steps]
            fits = [(history.first + each, model.fit(history.until(each), task)) for each in starts]
            known = [(number, parameters) for number, parameters in fits if parameters is not None]
            made[model.fit] = SharedFit(tuple(each[0] for each in known), tuple(each[1] for each in known))
        if made[model.fit].fits:
            found[name] = made[model.fit]
    return found


def verdicts_by_series(
    terms: JudgingTerms, names: Sequence[str], fits: Mapping[str, SharedFit], history: LoadHistory
) -> tuple[SeriesVerdict | None, ...]:
    """Return the verdict on each series by these models; None for a series about which too little is known.

    Each verdict is the one that the series would get in a history of its own. A series for which the arithmetic fails
    has no verdict and does not affect the others.
    """
    found: list[SeriesVerdict | None] = [None] * len(history.values)
    for first, places in _alike(history):
        block = LoadHistory(
            history.start_seconds + first * history.step_seconds, history.step_seconds, history.values[places, first:]
        )
        known = replace(terms, proofs=[terms.proofs[place] for place in places.tolist()] if terms.proofs else [])
        for place, verdict in zip(places, _verdicts_of_block(known, names, fits, block), strict=True):
            found[int(place)] = verdict
    return tuple(found)


def _verdicts_of_block(
    terms: JudgingTerms, names: Sequence[str], fits: Mapping[str, SharedFit], block: LoadHistory
) -> Sequence[SeriesVerdict | None]:
    try:
        known = [
            model for name in names for model in (model_named(name),) if not lacks_history(model, block.span_seconds)
        ]
        trials = [_trial_of(model, fits.get(model.name), block, terms.task) for model in known]
        return verdicts(terms, block, trials)
    except (ArithmeticError, ValueError, IndexError):
        if len(block.values) == 1:
            return [None]
    ones = (LoadHistory(block.start_seconds, block.step_seconds, row[np.newaxis]) for row in block.values)
    return [
        verdict
        for place, one in enumerate(ones)
        for verdict in _verdicts_of_block(replace(terms, proofs=terms.proofs[place : place + 1]), names, fits, one)
    ]


def _alike(history: LoadHistory) -> Iterator[tuple[int, IntArray]]:
    """Yield the first known step of the history and the series that begin there, a few series at a time.

    A record begins where the history of its series does. Where exactly a history begins makes no difference if that is
    long before all records, so such series are processed together.
    """
    known = ~np.isnan(history.values)
    firsts = np.where(known.any(axis=1), known.argmax(axis=1), history.steps)
    old = max(0, replayed_from(history) - int(_LONG_BEFORE_SECONDS / history.step_seconds))
    least = int(LEAST_HISTORY_SECONDS / history.step_seconds)
    by_first = group_values(
        (0 if first <= old else first, series)
        for series, first in enumerate(firsts.tolist())
        if history.steps - first > least
    )
    for first, some in by_first.items():
        for place in range(0, len(some), SERIES_AT_ONCE):
            yield first, np.array(some[place : place + SERIES_AT_ONCE], dtype=np.int64)


def _trial_of(model: Model, fit: SharedFit | None, history: LoadHistory, task: ForecastTask) -> ModelTrial:
    """Return the forecasts that a model would have made in the last days, from the fits that were made then."""
    skipped = replayed_from(history)

    def known_then(_model: Model, past: LoadHistory, _task: ForecastTask) -> Any:  # noqa: ANN401 - each model has its own parameters
        return None if fit is None else fit.known_at(past.first + past.steps)

    found = rolling_forecasts(model, history, task, RollingOptions(first_step=skipped), known_then)
    return ModelTrial(model.name, None, history.first + skipped, found.upper[:, skipped:])
