"""Recorded load from Prometheus by a range query in chunks, each of which is cached on disk."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.sources.prometheus.errors import PrometheusError, SettingsError, with_repair
from adapter.foundation.sources.prometheus.queries.connection import range_values
from recommender.backtest.errors import BacktestError
from recommender.backtest.recorded.range_cache import UNKNOWN, CachedSteps, RangeCache
from recommender.backtest.recorded.resampling import MOST_STEPS
from recommender.backtest.recorded.trace_file import RecordedLoad
from recommender.decisions.texts.times import rfc3339
from recommender.kinds.predictive.upper_bound import LARGEST_LOAD

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from recommender.kinds.predictive.arrays import FloatArray

CHUNK_STEPS: Final = 2000
"""The number of steps in a chunk: fewer than the 11,000 that Prometheus returns at once, so that slow queries are still
answered in time."""
_CHUNK_SECONDS: Final = 120.0
_SETTLED_SECONDS: Final = 300.0
"""Values younger than this may still change, because samples arrive late and are looked up for five minutes."""


@dataclass(frozen=True, slots=True)
class LoadRange:
    """The range query that is sent to Prometheus."""

    settings: PrometheusSettings
    query: str
    start: float
    end: float
    step_seconds: int

    @property
    def source(self) -> str:
        """Return the name of the trace in messages and in the report."""
        return f"{self.settings.endpoint.shown}: {self.query}"


def read_range(
    asked: LoadRange, cache: RangeCache, now: float, show: Callable[[float, str], None] = lambda _share, _what: None
) -> RecordedLoad:
    """Return the load at each whole multiple of the step from start to end. Raises BacktestError.

    `show` is called with the share that is done. A value that is infinite or not a number counts as unknown.
    """
    step = asked.step_seconds
    first, end = math.ceil(asked.start / step), math.floor(asked.end / step) + 1
    _require_steps(asked, end - first)
    chunks = range(first // CHUNK_STEPS, (end - 1) // CHUNK_STEPS + 1)
    parts = []
    for place, chunk in enumerate(chunks):
        show(place / len(chunks), f"querying Prometheus, part {place + 1} of {len(chunks)}")
        begin, until = max(first, chunk * CHUNK_STEPS), min(end, (chunk + 1) * CHUNK_STEPS)
        parts.append(_chunk(asked, cache, chunk, (begin, until), now))
    values = np.concatenate(parts)
    times = step * np.arange(first, end, dtype=np.float64)
    known = np.isfinite(values)
    if not known.any():
        raise BacktestError(f"{asked.source}: {_nothing_known(asked, values)}")
    # Steps without a value at both ends carry no information.
    kept = slice(int(np.argmax(known)), len(known) - int(np.argmax(known[::-1])))
    values = values[kept]
    is_sample = ~np.isnan(values)
    return RecordedLoad(asked.source, times[kept], np.where(np.isfinite(values), values, np.nan), is_sample=is_sample)


def _nothing_known(asked: LoadRange, values: FloatArray) -> str:
    """Return why a range holds no load: nothing was recorded, or nothing of it is a number."""
    span = f"from {rfc3339(asked.start)} to {rfc3339(asked.end)}"
    if np.isnan(values).all():
        return f"the query has no value {span}: check it, and the range (--last, --start, --end)"
    return f"the query has only values that are NaN or infinite {span}: check it, such as for a division by 0"


def _require_steps(asked: LoadRange, steps: int) -> None:
    """Raise BacktestError for a range that holds no step, or more than can be replayed."""
    seconds, step = asked.end - asked.start, asked.step_seconds
    if steps <= 0:
        wrong, fix = "no step", "write a longer --last, such as 14d (a number without a unit is seconds)"
    elif steps > MOST_STEPS:
        wrong = f"{steps:,} steps, more than {MOST_STEPS:,},"
        fix = f"write a shorter --last or a later --start, or --step={math.ceil(seconds / (MOST_STEPS - 1))}s"
    else:
        return
    raise BacktestError(f"{asked.source}: the range of {seconds:,.0f} s covers {wrong} of {step} s: {fix}")


def _chunk(asked: LoadRange, cache: RangeCache, chunk: int, wanted: tuple[int, int], now: float) -> FloatArray:
    """Return the values of the wanted steps, querying only the steps that the cache lacks."""
    begin, end = wanted
    known = cache.read(chunk)
    if known is None or begin > known.end or end < known.first:
        known = CachedSteps(begin, np.empty(0))
    before = _query_range(asked, begin, known.first) if begin < known.first else np.empty(0)
    after = _query_range(asked, known.end, end) if end > known.end else np.empty(0)
    merged = CachedSteps(min(begin, known.first), np.concatenate([before, known.values, after]))
    settled = max(0, int((now - _SETTLED_SECONDS) / asked.step_seconds) - merged.first)
    # Values after the last known one may still come, from a slow store or because the clock here is ahead.
    known_steps = np.flatnonzero(~np.isnan(merged.values[:settled]))
    if (len(before) or len(after)) and len(known_steps):
        cache.write(chunk, CachedSteps(merged.first, merged.values[: known_steps[-1] + 1]))
    return merged.values[begin - merged.first : end - merged.first]


def _query_range(asked: LoadRange, begin: int, end: int) -> FloatArray:
    step = asked.step_seconds
    try:
        # A server is silent while it evaluates the query: the time limit of connections must not be shorter.
        patient = replace(asked.settings, read_timeout_seconds=_CHUNK_SECONDS)
        series = range_values(patient, asked.query, begin * step, (end - 1) * step, step, _CHUNK_SECONDS)
    except PrometheusError as error:
        said = with_repair(error, "check the credentials under `prometheus` in --config")
        raise BacktestError(f"{asked.source}: {said}") from error
    except SettingsError as error:
        raise BacktestError(f"{asked.source}: {error}") from error
    if len(series) > 1:
        raise BacktestError(
            f"{asked.source}: the query has {len(series)} series, and a backtest replays one: write --query with "
            "sum(…) around it, or with a selector of one series"
        )
    values = np.full(end - begin, np.nan)
    for at, value in series[0] if series else ():
        if not begin <= round(at / step) < end:
            raise BacktestError(f"{asked.source}: the answer has values outside the range that was requested")
        if math.isfinite(value):
            _require_load(asked, at, value)
        values[round(at / step) - begin] = value if math.isfinite(value) else UNKNOWN
    return values


def _require_load(asked: LoadRange, at: float, value: float) -> None:
    """Raise BacktestError for a number that cannot be a load."""
    if value < 0:
        wrong, fix = "load is 0 or more", "write clamp_min(…, 0) around the query if that is intended"
    elif value > LARGEST_LOAD:
        wrong = f"no load is larger than {LARGEST_LOAD:.2g}"
        fix = "write < 1e15 behind the query to leave such values out"
    else:
        return
    raise BacktestError(f"{asked.source}: the value at {rfc3339(at)} is {value:g}, and {wrong}: {fix}")
