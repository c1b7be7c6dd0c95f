"""Tries models on the past days, and chooses the model to be used from now on (pure; for child processes).

A model is tried once on the past: for each step, it makes the forecast that it would have made then, from a fit to the
data known then. After that, its record is continued with forecasts from the parameters in use.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from adapter.foundation.reports.counts import count_of
from recommender.kinds.predictive.choice.auto import PlayedChoices, choice_limits, configured_capacity
from recommender.kinds.predictive.choice.blend import Blend, Part
from recommender.kinds.predictive.choice.options import DEFAULT_OPTIONS
from recommender.kinds.predictive.current_forecast import duration_text
from recommender.kinds.predictive.forecast import Forecasts, no_fit
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory
from recommender.kinds.predictive.models.table import model_named
from recommender.kinds.predictive.predictive_settings import ModelName
from recommender.kinds.predictive.rolling_forecasts import RollingOptions, rolling_forecasts
from recommender.kinds.predictive.simulation.bill import bill_of
from recommender.kinds.predictive.simulation.frontier import compare, frontier
from recommender.kinds.predictive.simulation.measures import JudgedLoad, measure
from recommender.kinds.predictive.simulation.serving import desired_replicas, simulate
from recommender.kinds.predictive.upper_bound import bounded_forecasts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.choice.records import ModelChoice, ModelRecord
    from recommender.kinds.predictive.choice.series_proof import SeriesProof
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.simulation.bill import Bill
    from recommender.kinds.predictive.simulation.measures import Measures
    from recommender.kinds.predictive.simulation.serving import FleetSettings

REPLAYED_SECONDS = 8.5 * DAY_SECONDS
"""How much of the past is replayed: a week for the record, a day because decisions resume from a day before the end of
the former record, and half a day to give the fleet its initial size."""
LEAST_HISTORY_SECONDS = DAY_SECONDS / 8
"""With less history, models cannot be compared."""
SERIES_AT_ONCE = 16
"""Number of series whose policies are simulated together: eight days of one series take about 10 MiB."""


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """The forecasts that one model would have made for the past of some series."""

    model: str
    parameters: Any
    """The parameters of a fit to the whole past; None for a model without parameters."""
    first: int
    """The number of the first step, counted from the Unix epoch."""
    upper: FloatArray
    """The upper forecasts that the model would have made, shape (series, steps); NaN where it did not take part."""


@dataclass(frozen=True, slots=True)
class SeriesVerdict:
    """The choice that acts for a series, and its reason."""

    model: str
    """The leading model."""
    reason: str
    blend: Blend
    """The blend that acts."""
    bill: Bill | None = None
    """The cost of the blend; None while it is unknown."""
    shortage_versus_headroom: Mapping[str, float | None] = field(default_factory=dict)
    last_day: str = ""
    proof: SeriesProof | None = None
    """What was known of the models a day ago, from which the next verdict resumes; None while nothing was known."""


@dataclass(frozen=True, slots=True)
class JudgingTerms:
    """The terms on which models are compared."""

    configured: str
    """The configured model, or `auto`."""
    task: ForecastTask
    fleet: FleetSettings
    proofs: Sequence[SeriesProof | None] = ()
    """The proofs of former verdicts, one for each series; without any, nothing is known from before the trials."""


def verdict_on(model: str, reason: str, headroom_ratio: float) -> SeriesVerdict:
    """Return the verdict on a series whose models have not been compared: the given model, unscaled."""
    is_present = model in {ModelName.REACTIVE, ModelName.HEADROOM}
    return SeriesVerdict(model, reason, Blend(headroom_ratio, () if is_present else (Part(model, 1.0, 1.0),)))


def trial_of(model_name: str, history: LoadHistory, task: ForecastTask) -> ModelTrial:
    """Return what a model would have forecast in the last days, and its parameters from now on."""
    model = model_named(model_name)
    skipped = replayed_from(history)
    forecasts = rolling_forecasts(model, history, task, RollingOptions(first_step=skipped))
    parameters = None if model.fit is no_fit else model.fit(history, task)
    return ModelTrial(model_name, parameters, history.first + skipped, forecasts.upper[:, skipped:])


def forecasts_since(trial: ModelTrial, history: LoadHistory, task: ForecastTask) -> FloatArray:
    """Return the upper forecasts since a trial's end, made with the parameters in use; shape (series, steps)."""
    begin = trial.first + trial.upper.shape[1] - history.first
    origins = np.arange(max(0, begin), history.steps, dtype=np.int64)
    if not len(origins):
        return np.empty((len(trial.upper), 0))
    missed = np.full((len(trial.upper), max(0, -begin)), np.nan)
    forecasts = bounded_forecasts(model_named(trial.model), trial.parameters, history, origins, task)
    return np.concatenate([missed, forecasts.upper], axis=1)


def continued_trial(trial: ModelTrial, since: FloatArray, history: LoadHistory) -> ModelTrial:
    """Return the trial with the forecasts since its end, and without those that are older than records."""
    if not since.shape[1]:
        return trial
    upper = np.concatenate([trial.upper, since], axis=1)
    surplus = max(0, upper.shape[1] - (history.steps - replayed_from(history)))
    return ModelTrial(trial.model, trial.parameters, trial.first + surplus, upper[:, surplus:])


def verdicts(terms: JudgingTerms, history: LoadHistory, trials: Sequence[ModelTrial]) -> tuple[SeriesVerdict, ...]:
    """Return the verdict on each series of the history, from the trials of models on the same series."""
    task, fleet = terms.task, terms.fleet
    skipped = replayed_from(history)
    start_seconds = history.start_seconds + skipped * history.step_seconds
    recent = LoadHistory(start_seconds, history.step_seconds, history.values[:, skipped:])
    limits = choice_limits(history, task)[:, skipped:]
    uppers = {trial.model: _align_forecasts(trial, recent) for trial in trials}
    found: list[SeriesVerdict] = []
    for first in range(0, len(history.values), SERIES_AT_ONCE):
        some = slice(first, first + SERIES_AT_ONCE)
        block = LoadHistory(start_seconds, history.step_seconds, recent.values[some])
        forecasts = {name: Forecasts(upper[some], upper[some]) for name, upper in uppers.items()}
        played = PlayedChoices(block, forecasts, task, fleet, limits[some], proofs=terms.proofs[some])
        for series, load in enumerate(block.values):
            choice, proof = played.last_choice(series), played.mixture.proofs[series]
            if terms.configured == ModelName.AUTO:
                verdict = _verdict_of_auto(choice, load, played.capacity[series], fleet)
            else:
                forecast = forecasts.get(terms.configured)
                one = LoadHistory(block.start_seconds, block.step_seconds, load[np.newaxis])
                upper = np.full(one.values.shape, np.nan) if forecast is None else forecast.upper[[series]]
                verdict = _verdict_on_configured(terms, choice, one, upper)
            found.append(replace(verdict, proof=proof))
    return tuple(found)


def caught_up(
    terms: JudgingTerms, history: LoadHistory, trials: Sequence[ModelTrial]
) -> tuple[tuple[FloatArray, ...], tuple[SeriesVerdict, ...]]:
    """Return the forecasts since the end of each trial, and the verdicts that follow from the continued trials.

    The trials are not returned: for 24 series in steps of a minute, they exceed the limit of a child's result.
    """
    since = tuple(forecasts_since(trial, history, terms.task) for trial in trials)
    whole = [continued_trial(trial, part, history) for trial, part in zip(trials, since, strict=True)]
    return since, verdicts(terms, history, whole)


def tried_and_judged(
    terms: JudgingTerms, history: LoadHistory, models: Sequence[str]
) -> tuple[tuple[ModelTrial, ...], tuple[SeriesVerdict, ...]]:
    """Return the trials of the named models without their forecasts, and the verdicts that follow from the trials.

    A single decision needs only the parameters, and the forecasts may exceed the limit of a child's result.
    """
    trials = [trial_of(name, history, terms.task) for name in models]
    judged = verdicts(terms, history, trials)
    ends = [trial.first + trial.upper.shape[1] for trial in trials]
    without = [replace(trial, first=end, upper=trial.upper[:, :0]) for trial, end in zip(trials, ends, strict=True)]
    return tuple(without), judged


def last_day_text(load: FloatArray, capacity: FloatArray, fleet: FleetSettings) -> str:
    """Return a text that compares a capacity over the last day with headroom of equal cost; empty if unknown."""
    steps = int(DAY_SECONDS / fleet.step_seconds)
    if len(load) < steps or np.isnan(load[-steps:]).all():
        return ""
    # The day, and the time that its first size depends on.
    needed = steps + fleet.down_window_steps + fleet.lag_steps
    load, capacity = load[-needed:], capacity[-needed:]
    judged = JudgedLoad(load, np.arange(len(load)) >= len(load) - steps, fleet)
    found = measure(judged, simulate(desired_replicas(capacity, fleet.load_per_replica), fleet))
    ratio = compare(found, frontier(judged, found.replica_hours)).cost_as_headroom_ratio
    headroom = simulate(desired_replicas(load * (1 + ratio), fleet.load_per_replica), fleet)
    beside = _measures_text(measure(judged, headroom))
    return f"in the last day {_measures_text(found)}; headroom of {100 * ratio:.0f}%, which costs the same, {beside}"


def _verdict_of_auto(
    choice: ModelChoice, load: FloatArray, capacity: FloatArray, fleet: FleetSettings
) -> SeriesVerdict:
    last_day = last_day_text(load, capacity, fleet)
    return SeriesVerdict(
        choice.model, f"auto: {_reason(choice)}", choice.blend, choice.bill, _shortages(choice), last_day
    )


def _verdict_on_configured(
    terms: JudgingTerms, choice: ModelChoice, history: LoadHistory, upper: FloatArray
) -> SeriesVerdict:
    """Return the verdict on a history of one series; the forecasts of the configured model have its shape."""
    configured, task, fleet = terms.configured, terms.task, terms.fleet
    ratio = 0.0 if configured == ModelName.REACTIVE else task.headroom_ratio
    load, capacity = history.values[0], configured_capacity(configured, history, upper, task)[0]
    return replace(
        verdict_on(configured, _configured_reason(choice.record(configured)), ratio),
        bill=bill_of(load, capacity, fleet),
        shortage_versus_headroom=_shortages(choice),
        last_day=last_day_text(load, capacity, fleet),
    )


def _shortages(choice: ModelChoice) -> dict[str, float | None]:
    return {str(record.name): record.shortage_versus_headroom for record in choice.records}


def _reason(choice: ModelChoice) -> str:
    """Return why this blend acts: its parts, the record of the leading model, and the total cost."""
    about = choice.record(choice.model)
    if about is None:
        best = min(choice.records, key=lambda each: each.shortage_versus_headroom, default=None)
        beginning = str(choice.reason)
        if best is None or best.judged_seconds < DEFAULT_OPTIONS.least_seconds:
            return f"{choice.model} until a model has been judged for {duration_text(DEFAULT_OPTIONS.least_seconds)}"
        return f"{beginning}; the best is {best.name}: {_record_text(best)}; {_bill_text(choice.bill)}"
    shares = {part.model: part.weight for part in choice.blend.parts} | {"headroom": choice.blend.headroom_weight}
    named = [f"{name} {100 * weight:.0f}%" for name, weight in sorted(shares.items(), key=lambda each: -each[1])]
    mixed = f" ({', '.join(each for each in named if not each.endswith(' 0%'))})" if len(choice.blend.parts) > 1 else ""
    return f"{choice.model} leads{mixed}, {choice.reason}: {_record_text(about)}; {_bill_text(choice.bill)}"


def _bill_text(bill: Bill) -> str:
    above = "" if bill.above_load_ratio is None else f", {100 * bill.above_load_ratio:.0f}% above the load"
    return f"it costs as much as {100 * bill.as_headroom_ratio:.0f}% headroom{above}"


def _configured_reason(record: ModelRecord | None) -> str:
    return "it is configured" if record is None else f"it is configured; its record: {_record_text(record)}"


def _record_text(record: ModelRecord) -> str:
    return (
        f"{record.shortage_versus_headroom:.2f} times the shortage of plain headroom at equal cost"
        f" over {duration_text(record.judged_seconds)}"
    )


def _measures_text(measures: Measures) -> str:
    return (
        f"{measures.replica_hours:.0f} replica-hours, short for {measures.tau_under_percent:.2g}% of the time,"
        f" {count_of(measures.changes, 'change')}"
    )


def _align_forecasts(trial: ModelTrial, history: LoadHistory) -> FloatArray:
    """Return the trial's forecasts for the steps of a history; NaN where the trial has none."""
    found = np.full(history.values.shape, np.nan)
    offset = trial.first - history.first
    begin, end = max(0, offset), min(history.steps, offset + trial.upper.shape[1])
    if end > begin:
        found[:, begin:end] = trial.upper[:, begin - offset : end - offset]
    return found


def replayed_from(history: LoadHistory) -> int:
    """Return the first step of a history that records cover."""
    return max(0, history.steps - int(REPLAYED_SECONDS / history.step_seconds))
