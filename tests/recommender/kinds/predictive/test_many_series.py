"""Series that are judged together get the verdicts that each would get alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.kinds.predictive import many_series
from recommender.kinds.predictive.choice.auto import PlayedChoices
from recommender.kinds.predictive.forecast import ForecastTask
from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.learning import JudgingTerms, SeriesVerdict, trial_of, verdict_on, verdicts
from recommender.kinds.predictive.many_series import newest_fits, shared_fits, verdicts_by_series
from recommender.kinds.predictive.models.table import MODELS, model_named
from recommender.kinds.predictive.rolling_forecasts import RollingOptions, rolling_forecasts
from recommender.kinds.predictive.simulation.frontier import frontier
from recommender.kinds.predictive.simulation.measures import JudgedLoad, measure
from recommender.kinds.predictive.simulation.serving import FleetSettings, desired_replicas, simulate
from tests.recommender.kinds.predictive.waves import DAY_STEPS, STEP_SECONDS, bursts_every_day, random_walk

if TYPE_CHECKING:
    from collections.abc import Sequence

TASK = ForecastTask(lead_seconds=1200.0, window_seconds=900.0)
FLEET = FleetSettings(STEP_SECONDS, startup_seconds=600.0, load_per_replica=20.0)
AUTO = JudgingTerms("auto", TASK, FLEET)
LIGHT = tuple(model.name for model in MODELS if not model.is_heavy)
DAYS = 9


def together(*rows: np.ndarray) -> LoadHistory:
    return LoadHistory(1_700_006_400.0, STEP_SECONDS, np.stack(rows))


def noise(days: int, seed: int) -> np.ndarray:
    return 1000.0 * np.abs(1.0 + np.random.default_rng(seed).normal(0.0, 0.15, days * DAY_STEPS))


def of_all_kinds() -> LoadHistory:
    """Return loads of different sizes, shapes and ages; one of them is unknown at first, and one throughout."""
    cycle, walk = bursts_every_day(DAYS).values[0], random_walk(DAYS).values[0]
    young, hours_old, unknown = cycle.copy(), walk.copy(), np.full(len(cycle), np.nan)
    young[: 6 * DAY_STEPS], hours_old[:-10] = np.nan, np.nan
    gaps = np.where(np.random.default_rng(5).random(len(cycle)) < 0.1, np.nan, 30 * cycle)
    return together(cycle, walk, noise(DAYS, 1), young, gaps, np.zeros(len(cycle)), hours_old, unknown)


@pytest.fixture(scope="module")
def judged_together() -> Sequence[SeriesVerdict | None]:
    """Return the verdicts on `of_all_kinds`."""
    return verdicts_by_series(AUTO, LIGHT, {}, of_all_kinds())


def test_each_series_has_the_verdict_that_it_would_have_alone(judged_together: Sequence[SeriesVerdict | None]) -> None:
    history, found = of_all_kinds(), judged_together
    assert [verdict is None for verdict in found] == [False] * 6 + [True] * 2
    for series, verdict in ((0, found[0]), (3, found[3]), (4, found[4])):
        values = history.values[series]
        first = int(np.flatnonzero(~np.isnan(values))[0])
        start_seconds = history.start_seconds + first * STEP_SECONDS
        alone = LoadHistory(start_seconds, STEP_SECONDS, values[np.newaxis, first:])
        trials = [trial_of(name, alone, TASK) for name in LIGHT]
        assert verdicts(AUTO, alone, trials) == (verdict,)


def test_different_loads_get_different_verdicts(judged_together: Sequence[SeriesVerdict | None]) -> None:
    cycle, walk, noisy, *_ = judged_together
    assert cycle is not None
    assert walk is not None
    assert noisy is not None
    assert (cycle.model, walk.model, noisy.model) == ("seasonal-held", "headroom", "percentile")
    assert noisy.bill is not None
    assert noisy.bill.as_headroom_ratio < 0.4


def test_random_walks_and_noise_together_are_no_worse_than_headroom_of_equal_cost() -> None:
    short = allowed = 0.0
    walks = [random_walk(DAYS, seed).values[0] for seed in (*range(5), *range(10, 15))]
    history = together(*walks, noise(DAYS, 0), noise(DAYS, 1))
    forecasts = {name: rolling_forecasts(model_named(name), history, TASK, RollingOptions()) for name in LIGHT}
    capacities = PlayedChoices(history, forecasts, TASK, FLEET).capacity
    counted = np.arange(history.steps) >= 4 * DAY_STEPS
    for series, (load, capacity) in enumerate(zip(history.values, capacities, strict=True)):
        judged = JudgedLoad(load, counted, FLEET)
        points = [point.measures for point in frontier(judged)]
        fleet = simulate(desired_replicas(capacity, FLEET.load_per_replica), FLEET)
        found = measure(judged, fleet)
        hours = [point.replica_hours for point in points]
        rival = float(np.interp(found.replica_hours, hours, [point.tau_under_percent for point in points]))
        assert found.replica_hours <= 1.25 * hours[10], "headroom of 10% costs little less"
        if series >= len(walks):
            assert found.tau_under_percent < 0.5 * rival
        else:
            short, allowed = short + found.tau_under_percent, allowed + rival
    # Few steps are short at all: three of 7,200 decide nothing.
    assert short <= 1.05 * allowed + 3 * 100 / (5 * DAY_STEPS)


def test_a_failure_in_one_series_does_not_affect_the_verdicts_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails_for_large_ones(terms: JudgingTerms, history: LoadHistory, *_others: object) -> tuple[SeriesVerdict, ...]:
        if np.nanmax(history.values) > 20_000:
            raise FloatingPointError("overflow")
        return tuple(verdict_on(terms.configured, f"{load[-1]:g}", 0.1) for load in history.values)

    monkeypatch.setattr(many_series, "verdicts", fails_for_large_ones)
    history = of_all_kinds()
    found = verdicts_by_series(JudgingTerms("linear", TASK, FLEET), (), {}, history)
    assert [each and each.reason for each in found] == [
        *(f"{history.values[series, -1]:g}" for series in range(4)),
        None,
        "0",
        None,
        None,
    ]


def test_each_step_uses_the_newest_shared_fit_made_before_it() -> None:
    history = together(bursts_every_day(9).values[0])
    fits = shared_fits(("boosted", "boosted-conformal"), history, TASK)
    assert fits["boosted"] is fits["boosted-conformal"]
    start = round(history.start_seconds / STEP_SECONDS)
    assert [number - start for number in fits["boosted"].numbers] == [2 * 144, 4 * 144, 6 * 144, 8 * 144, 9 * 144]
    assert fits["boosted"].known_at(start) is None
    assert fits["boosted"].known_at(start + 5 * 144) is fits["boosted"].fits[1]
    newest = newest_fits(("boosted",), history, TASK)["boosted"]
    assert newest.numbers == (start + history.steps,)
    (verdict,) = verdicts_by_series(AUTO, ("boosted", "headroom"), fits, history)
    assert verdict is not None
    assert verdict.model == "boosted"
