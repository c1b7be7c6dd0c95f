"""The load of nodes over a week, by quarters of an hour, and what it shows about the next hour."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats

    QuarterMeans: TypeAlias = NDArray[np.float16]

QUARTER_SECONDS: Final = 900
QUARTERS_A_DAY: Final = 86_400 // QUARTER_SECONDS
WEEK_DAYS: Final = 7
QUARTERS: Final = WEEK_DAYS * QUARTERS_A_DAY


def _no_means() -> QuarterMeans:
    return np.empty((0, QUARTERS), dtype=np.float16)


@dataclass(frozen=True, slots=True, eq=False)
class LoadWeek:
    """The mean CPU utilisation of a week. Arrays are never written to after the value is made."""

    end: int = 0
    """Unix seconds at which the last quarter ends, a multiple of `QUARTER_SECONDS`."""
    nodes: tuple[str, ...] = ()
    """The sorted names of the nodes."""
    means: QuarterMeans = field(default_factory=_no_means)
    """Ratios (0..1) of shape (nodes, QUARTERS); NaN where a quarter is not known. Column `i` is the mean of the quarter
    until `end - (QUARTERS - 1 - i) * QUARTER_SECONDS`. They are in half precision, whose error is at most 0.0005, so
    that 5,000 nodes take 7 MB."""


class ForecastVerdict(StrEnum):
    """Whether the next hour of a node is predicted, or why not."""

    PREDICTED = "predicted"
    NOT_BETTER = "not_better"
    SHORT_HISTORY = "short_history"
    NO_LOAD = "no_load"


FORECAST_VERDICTS: Final = tuple(ForecastVerdict)
"""The number of a verdict in `HourForecast.verdicts` is its index here."""


@dataclass(frozen=True, slots=True, eq=False)
class Backtest:
    """How good the predictions for each node were within its week."""

    nodes: tuple[str, ...] = ()
    loss_ratio: Floats = field(default_factory=lambda: np.empty(0))
    """The loss of predictions by the time of day divided by the loss of the last 15 minutes, of shape (nodes,); NaN
    where too little is known."""
    highest: Floats = field(default_factory=lambda: np.empty(0))
    """The largest mean of the week, with the same shape."""


@dataclass(frozen=True, slots=True, eq=False)
class HourForecast:
    """The CPU of the next hour, in the order of a snapshot's nodes."""

    ratio: Floats
    """The largest mean of 15 minutes that is expected, as a ratio (0..1); NaN where the verdict is not `predicted`."""
    verdicts: NDArray[np.int8]
    """An index of `FORECAST_VERDICTS` for each node."""
