"""Forecasts each node's CPU in the next hour from the same time on earlier days, and judges its forecasts (pure).

The prediction is the largest mean of 15 minutes within the next hour, which the node has to bear. It starts from the
load of the last 15 minutes, so pods that were added or removed since the earlier days count in full. The rise of the
load in the hour after this time of the day is added: the upper quantile of the rises on all known days, including the
rises a quarter of an hour earlier and later. If only few rises are known, it is the largest one, as in conformal
prediction.

**Backtest.** Each quarter of an hour of the later days is predicted from the days before it alone (rolling origin), and
judged by the quantile (pinball) loss, in which an underestimated load costs more. The same loss is computed for the
last 15 minutes, alone and with the same quantile of the node's rises at any time of the day as a margin. So a
prediction is used only where the time of the day itself says something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.arrays import rearranged_rows, rows_of
from adapter.nodes.model.loads import AVG, SAMPLE_WINDOWS_SECONDS, LoadResource, LoadSnapshot
from adapter.nodes.model.week import (
    FORECAST_VERDICTS,
    QUARTER_SECONDS,
    QUARTERS,
    QUARTERS_A_DAY,
    WEEK_DAYS,
    Backtest,
    HourForecast,
    LoadWeek,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from adapter.foundation.time.pace import Pace
    from adapter.nodes.model.arrays import Floats

    Singles = NDArray[np.float32]

QUANTILE: Final = 0.9
"""Share of hours that should not exceed their prediction."""
BETTER_RATIO: Final = 0.9
"""A prediction is used if its loss was at most this share of the loss of the last 15 minutes."""
HIGHEST_FACTOR: Final = 1.25
"""A prediction is at most this many times the largest load of the week."""
_HOUR: Final = 3600 // QUARTER_SECONDS
_LEAST_OF_AN_HOUR: Final = _HOUR - 1
"""How many of an hour's four quarters must be known."""
_LEAST_RISES: Final = 4
"""How many rises must be known. Each day has three of them around a time of the day, so these are from at least two
days."""
_FIRST_JUDGED_DAY: Final = 2
_JUDGED_DAYS: Final = WEEK_DAYS - _FIRST_JUDGED_DAY
_LEAST_JUDGED: Final = QUARTERS_A_DAY * 2 // 3
"""How many quarters of an hour of a day must be both predicted and known for predictions to be judged on that day."""
_NODES_AT_ONCE: Final = 4
"""Nodes that are judged at once; their backtest takes about a millisecond."""
_FIVE_MINUTES: Final = SAMPLE_WINDOWS_SECONDS.index(300)
_PREDICTED, _NOT_BETTER, _SHORT_HISTORY, _NO_LOAD = map(np.int8, range(len(FORECAST_VERDICTS)))
"""The numbers of the verdicts, in their order."""


def backtest(week: LoadWeek, pace: Pace) -> Backtest:
    """Return how well each node's next hours could have been predicted."""
    if _known_days(week) <= _FIRST_JUDGED_DAY:
        # Nothing can be judged yet, which is the usual case for days after a first start.
        unknown = np.full(len(week.nodes), np.nan)
        return Backtest(week.nodes, unknown, unknown)
    starts = range(0, len(week.nodes), _NODES_AT_ONCE)
    parts = (_backtest_errors(week.means[start : start + _NODES_AT_ONCE].astype(np.float32)) for start in starts)
    found = [part for several in pace.timed(parts) for part in several]
    return Backtest(week.nodes, *np.concatenate(found, axis=1))


def _known_days(week: LoadWeek) -> int:
    """Return on how many days of the week the load of any node is known."""
    known = np.flatnonzero((~np.isnan(week.means)).any(axis=0))
    return len(np.unique(known // QUARTERS_A_DAY))


def forecast(snapshot: LoadSnapshot, week: LoadWeek, judged: Backtest, now: float) -> HourForecast:
    """Return the forecast of each node's next hour; `now` is in Unix seconds.

    It is at least the average of the last five minutes, and at most 1 and 1.25 times the largest load of the week.
    Nothing is predicted from a load that is estimated or not served.
    """
    nothing = np.full(len(snapshot.nodes), np.nan)
    cpu = snapshot.resources.get(LoadResource.CPU)
    level = nothing if cpu is None else cpu.measured_values(0, AVG)
    latest = nothing if cpu is None else cpu.measured_values(_FIVE_MINUTES, AVG)
    rise = rearranged_rows(_rise_now(week, now).astype(np.float64), rows_of(snapshot.nodes, week.nodes))
    rows = rows_of(snapshot.nodes, judged.nodes)
    loss_ratio, highest = rearranged_rows(judged.loss_ratio, rows), rearranged_rows(judged.highest, rows)
    ratio = np.fmax(_bounded_forecast(level, rise, np.fmax(highest, level)), np.where(np.isnan(latest), level, latest))
    verdicts = np.where(loss_ratio <= BETTER_RATIO, _PREDICTED, _NOT_BETTER)
    for is_unknown, verdict in ((np.isnan(rise) | np.isnan(loss_ratio), _SHORT_HISTORY), (np.isnan(level), _NO_LOAD)):
        verdicts[is_unknown] = verdict
    return HourForecast(np.where(verdicts == _PREDICTED, ratio, np.nan), verdicts)


def upper_quantile(values: Singles) -> Singles:
    """Return the quantile of the numbers along the last axis; NaN where there are too few.

    Of n numbers it is the one of rank `ceil(QUANTILE * (n + 1))`, or the largest.
    """
    # NaN is sorted to the end.
    ordered = np.sort(values, axis=-1)
    known = np.count_nonzero(~np.isnan(values), axis=-1)
    rank = np.minimum(np.ceil(QUANTILE * (known + 1)).astype(np.intp), known) - 1
    found: Singles = np.take_along_axis(ordered, np.maximum(rank, 0)[..., None], axis=-1)[..., 0]
    return np.where(known >= _LEAST_RISES, found, np.float32(np.nan))


def _rises(means: Singles) -> Singles:
    """Return how far the largest of the next four quarters of an hour is above each one; NaN if not known."""
    after = np.full((*means.shape[:-1], means.shape[-1] + _HOUR), np.nan, dtype=np.float32)
    after[..., : means.shape[-1]] = means
    nexts = [after[..., ahead : ahead + means.shape[-1]] for ahead in range(1, _HOUR + 1)]
    largest = np.fmax.reduce(nexts)
    is_known = sum(~np.isnan(one) for one in nexts) >= _LEAST_OF_AN_HOUR
    found: Singles = np.where(is_known, largest - means, np.float32(np.nan))
    return found


def _backtest_errors(means: Singles) -> Floats:
    """Return the values of `Backtest` for some nodes, of shape (2, nodes)."""
    return np.stack((_loss_ratio(means), _highest(means)))


def _loss_ratio(means: Singles) -> Floats:
    """Return the loss of predictions by the time of the day divided by the loss of the last 15 minutes."""
    levels, rises = means, _rises(means)
    shape = (len(means), WEEK_DAYS, QUARTERS_A_DAY)
    padded = np.pad(rises, ((0, 0), (1, 1)), constant_values=np.nan)
    around = np.stack([padded[:, shift : shift + QUARTERS].reshape(shape) for shift in range(3)], axis=-1)
    levels, rises = levels.reshape(shape), rises.reshape(shape)
    losses, judged_days = np.zeros((3, _JUDGED_DAYS, len(means))), np.zeros(len(means))
    for day in range(_FIRST_JUDGED_DAY, WEEK_DAYS):
        before = around[:, :day].transpose(0, 2, 1, 3).reshape(len(means), QUARTERS_A_DAY, -1)
        by_time = upper_quantile(before)
        at_any_time = upper_quantile(rises[:, :day].reshape(len(means), -1))[:, None]
        now, rise = levels[:, day], rises[:, day]
        highest = np.fmax(_highest(levels[:, :day].reshape(len(means), -1))[:, None], now)
        is_judged = ~np.isnan(rise) & ~np.isnan(by_time)
        is_judged &= np.count_nonzero(is_judged, axis=1, keepdims=True) >= _LEAST_JUDGED
        judged_days += is_judged.any(axis=1)
        for which, predicted in enumerate((by_time, at_any_time, np.zeros_like(by_time))):
            loss = _loss(now + rise - _bounded_forecast(now, predicted, highest))
            losses[which, day - _FIRST_JUDGED_DAY] = np.where(is_judged, loss, 0.0).sum(axis=1)
    return np.where(judged_days > 0, _ratio_of(losses), np.nan)


def _ratio_of(losses: Floats) -> Floats:
    """Return the loss of the predictions divided by that of the last 15 minutes, in the better of its two forms.

    `losses` is of shape (3, days, nodes): predictions, and both forms. The ratio is at least 1 if the predictions were
    not better on most of the days with any loss, since a single day may have been luck. A load that never changes is
    predicted without any loss by the last 15 minutes.
    """
    ours, rivals = losses[0], losses[1:]
    rival = rivals[rivals.sum(axis=1).argmin(axis=0), :, np.arange(losses.shape[2])].T
    total, rival_total = ours.sum(axis=0), rival.sum(axis=0)
    ratio = np.divide(total, rival_total, out=np.ones_like(total), where=rival_total > 0.0)
    days, won = np.count_nonzero(ours + rival > 0.0, axis=0), np.count_nonzero(ours < rival, axis=0)
    found: Floats = np.where(2 * won > days, ratio, np.maximum(ratio, 1.0))
    return found


def _loss(error: Floats) -> Floats:
    """Return the quantile loss of an error, which is the observed minus the predicted value."""
    found: Floats = np.maximum(QUANTILE * error, (QUANTILE - 1.0) * error)
    return found


def _bounded_forecast(level: Floats | Singles, rise: Floats | Singles, highest: Floats | Singles) -> Floats:
    found: Floats = np.clip(level + rise, 0.0, np.minimum(HIGHEST_FACTOR * highest, 1.0))
    return found


def _highest(means: Singles) -> Singles:
    """Return the largest number of each row; NaN for a row without any."""
    found: Singles = np.fmax.reduce(means, axis=-1, initial=np.nan)
    return found


def _rise_now(week: LoadWeek, now: float) -> Singles:
    """Return the upper quantile of the rises in the hour after this time of the day."""
    at = QUARTERS - 1 + round((now - week.end) / QUARTER_SECONDS)
    found = []
    for days_ago in range(1, WEEK_DAYS + 1):
        first = at - days_ago * QUARTERS_A_DAY - 1
        wanted = np.arange(first, first + 3 + _HOUR)
        is_there = (wanted >= 0) & (wanted < QUARTERS)
        part = week.means[:, np.where(is_there, wanted, 0)].astype(np.float32)
        found.append(_rises(np.where(is_there, part, np.float32(np.nan)))[:, :3])
    return upper_quantile(np.concatenate(found, axis=1))
