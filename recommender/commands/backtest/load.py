"""Reads the load that a backtest replays: from a file, from Prometheus, or from the built-in example."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.flags.parsing import UsageError
from recommender.backtest.recorded.example_load import example_load
from recommender.backtest.recorded.prometheus_range import LoadRange, read_range
from recommender.backtest.recorded.range_cache import RangeCache
from recommender.backtest.recorded.trace_file import RecordedLoad, read_trace
from recommender.commands.chosen_backend import chosen_prometheus
from recommender.commands.past_span import DEFAULT_LAST_SECONDS, moment_of, whole_step

if TYPE_CHECKING:
    from adapter.foundation.service.flags.table import FlagValues
    from recommender.backtest.progress import ProgressLine
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.kinds.predictive.predictive_settings import PredictiveSettings

_PROMETHEUS_STEP_SECONDS: Final = 60.0
_RANGE_FLAGS: Final = ("query", "prometheus-url", "start", "end", "last")
_DEFAULT_STATE: Final = Path("state")
"""The state folder that a configuration has by default."""


def read_load(
    values: FlagValues, configuration: Configuration | None, settings: PredictiveSettings | None, line: ProgressLine
) -> RecordedLoad:
    """Return the load that the flags select. Raises UsageError and BacktestError."""
    _check_one_source(values)
    path = values.path("trace")
    if path is not None:
        return read_trace(path)
    if values.boolean("example"):
        return example_load()
    query = _query(values, settings)
    step = whole_step(values.seconds("step") if "step" in values.given else _PROMETHEUS_STEP_SECONDS)
    now = time.time()
    start, end = _range(values, now)
    unknown = ", and the configuration has no prometheus" if "config" in values.given else ""
    lacking = f"--prometheus-url is missing{unknown}: write its address, such as http://prometheus:9090"
    asked = LoadRange(chosen_prometheus(values, configuration, settings, lacking), query, start, end, int(step))
    state = _DEFAULT_STATE if configuration is None else configuration.state
    cache = RangeCache.of(state / "backtest", asked.settings, asked.query, asked.step_seconds)
    found = read_range(asked, cache, now, line.show)
    cache.drop_unused(now)
    return found


def _check_one_source(values: FlagValues) -> None:
    """Refuse flags that select no load, or more than one."""
    ranged = [name for name in _RANGE_FLAGS if name in values.given]
    named = (["trace"] if values.path("trace") else []) + (["example"] if values.boolean("example") else []) + ranged
    if not named:
        raise UsageError(
            "no load is given: write --trace FILE.csv, or --query PROMQL --prometheus-url URL --last 14d; "
            "--example replays a generated load"
        )
    if named[0] not in _RANGE_FLAGS and len(named) > 1:
        raise UsageError(
            f"--{named[0]} and --{named[1]} cannot be combined: the load is either that of a file, of Prometheus, or "
            "the example"
        )


def _query(values: FlagValues, settings: PredictiveSettings | None) -> str:
    """Return the query of the flag or, without the flag, the query for the recommendation's load."""
    if "query" in values.given:
        query = values.text("query").strip()
        if not query:
            raise UsageError("--query is empty: write the PromQL of the load, such as 'sum(rate(requests_total[1m]))'")
        return query
    if settings is None or settings.load is None:
        raise UsageError(
            "there is no query for Prometheus: write --query PROMQL, or name a --config with a predictive "
            "recommendation, whose load is the query"
        )
    return settings.load


def _range(values: FlagValues, now: float) -> tuple[float, float]:
    """Return the start and the end of the load, in Unix seconds."""
    end = moment_of(values, "end", now) if "end" in values.given else now
    if "start" not in values.given:
        last = values.seconds("last") if "last" in values.given else DEFAULT_LAST_SECONDS
        if not last:
            raise UsageError("--last must be above 0: write a duration such as 14d")
        return _checked_start(end - last), end
    if "last" in values.given:
        raise UsageError("--start and --last cannot be combined: each of them is the beginning of the load")
    start = moment_of(values, "start", now)
    if start > end:
        until = f"--end {values.text('end')}" if "end" in values.given else "now, which is the end without --end"
        raise UsageError(f"--start {values.text('start')} is after {until}: swap them, or correct one of them")
    return _checked_start(start), end


def _checked_start(start: float) -> float:
    """Return the start if it is not before the Unix epoch, as Prometheus has no such data. Raises UsageError."""
    if start < 0:
        raise UsageError("the load would begin before 1970: correct --last, --start or --end")
    return start
