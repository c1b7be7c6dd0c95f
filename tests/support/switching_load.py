"""A load that switches between 10 and 90%, as a scraped counter, and Prometheus's `rate` of this counter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from adapter.nodes.model.arrays import Floats

LOW: Final = 0.1
HIGH: Final = 0.9
SWITCH_SECONDS: Final = 120.0
TRUE_STD: Final = 0.4


def busy_seconds(times: Floats) -> Floats:
    """Return the counter, which is the integral of the load; the load is low first."""
    periods, within = np.divmod(times, 2 * SWITCH_SECONDS)
    in_period = LOW * within + (HIGH - LOW) * np.maximum(within - SWITCH_SECONDS, 0.0)
    return periods * SWITCH_SECONDS * (LOW + HIGH) + in_period


@dataclass(frozen=True)
class ScrapedCounter:
    """One node's counter, scraped with an offset of its own, and each time a little too early or too late."""

    times: Floats
    values: Floats

    def rate(self, at: float, range_seconds: float) -> float:
        """Return the rate over the range that ends at a time, extrapolated as in Prometheus; NaN if there is none."""
        first, stop = np.searchsorted(self.times, [at - range_seconds, at], side="right")
        if stop - first < 2:
            return float("nan")
        begin, end = self.times[first], self.times[stop - 1]
        between = (end - begin) / (stop - first - 1)
        to_begin, to_end = begin - (at - range_seconds), at - end
        covered = end - begin
        covered += to_begin if to_begin < 1.1 * between else between / 2
        covered += to_end if to_end < 1.1 * between else between / 2
        delta = self.values[stop - 1] - self.values[first]
        return float(delta * covered / (end - begin) / range_seconds)

    def irate(self, at: float, range_seconds: float) -> float:
        """Return the rate between the last two scrapes in the range that ends at a time; NaN if there are not two."""
        first, stop = np.searchsorted(self.times, [at - range_seconds, at], side="right")
        if stop - first < 2:
            return float("nan")
        return float(np.diff(self.values[stop - 2 : stop])[0] / np.diff(self.times[stop - 2 : stop])[0])


def scraped(random: np.random.Generator, scrape_seconds: float, jitter_seconds: float, until: float) -> ScrapedCounter:
    """Return a counter that was scraped from 0 until a time."""
    due = np.arange(random.uniform(0, scrape_seconds), until, scrape_seconds)
    times = np.sort(due + random.uniform(-jitter_seconds, jitter_seconds, due.size))
    phase = random.uniform(0, 2 * SWITCH_SECONDS)
    return ScrapedCounter(times, busy_seconds(times + phase))


def counters_of(scrape_seconds: int, until: float, nodes: int) -> list[ScrapedCounter]:
    """Return the counters of several nodes, which are the same in each call."""
    random = np.random.default_rng(16)
    return [scraped(random, scrape_seconds, 0.02 * scrape_seconds, until) for _ in range(nodes)]


def rates(scrape_seconds: int, range_seconds: float, step_seconds: int, *, columns: int, nodes: int = 40) -> Floats:
    """Return the rates of several nodes at each step, of shape (nodes, columns), as a range query would."""
    steps = 600.0 + step_seconds * np.arange(columns)
    counters = counters_of(scrape_seconds, float(steps[-1]) + 60.0, nodes)
    return np.array([[counter.rate(at, range_seconds) for at in steps] for counter in counters])


def instant_rates(scrape_seconds: int, step_seconds: int, *, columns: int, nodes: int = 40) -> Floats:
    """Return the same as `rates`, but for `irate` over four scrapes."""
    steps = 600.0 + step_seconds * np.arange(columns)
    counters = counters_of(scrape_seconds, float(steps[-1]) + 60.0, nodes)
    return np.array([[counter.irate(at, 4.0 * scrape_seconds) for at in steps] for counter in counters])
