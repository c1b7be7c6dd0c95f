"""What forecasts are worth on recorded load: `python -m benchmarks.forecast_traces --traces DIR`.

Each trace is replayed with each start-up time, with the defaults of the backtest command. A row is one part of it: the
judged steps, and their first and second half. The parameters of the models were chosen on first halves alone, so that
the second halves confirm them. Ratios are shortages (share of the time, missing share), lost load and changes of size
relative to plain headroom at equal replica-hours; below 1 the policy is better.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.recorded_traces import RECORDINGS, TraceMissingError, missing_message
from benchmarks.report import report
from benchmarks.running import run
from recommender.backtest.errors import BacktestError
from recommender.backtest.options import BacktestOptions
from recommender.backtest.replay import fleet_settings, warm_up_steps
from recommender.predictive.choice.auto import capacity_of, run_auto
from recommender.predictive.models.table import MODELS
from recommender.predictive.rolling import RollingOptions, rolling_forecasts
from recommender.predictive.settings import ModelName
from recommender.predictive.simulation.frontier import compare, frontier, reaching
from recommender.predictive.simulation.measures import measure
from recommender.predictive.simulation.serving import desired_replicas, simulate
from recommender.predictive.tasks import task_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.progress import Progress
    from benchmarks.recorded_traces import Recording
    from benchmarks.report import Cell, Report, Row
    from recommender.predictive.arrays import BoolArray, FloatArray
    from recommender.predictive.history import LoadHistory
    from recommender.predictive.simulation.frontier import Comparison
    from recommender.predictive.simulation.serving import FleetSettings

NAME = "forecast_traces"
TRACES = Path(__file__).resolve().parents[2] / "shared" / "traces"
AUTO = ModelName.AUTO.value
YARDSTICKS = frozenset({ModelName.REACTIVE.value, ModelName.HEADROOM.value})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{NAME}", description=__doc__)
    parser.add_argument("--traces", type=Path, default=TRACES, help="the folder of the recorded traces")
    parser.add_argument("--trace", action="append", choices=[each.name for each in RECORDINGS], help="default: all")
    parser.add_argument("--model", action="append", choices=[each.name for each in MODELS], help="default: all")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    wanted = tuple(each for each in RECORDINGS if not options.trace or each.name in options.trace)
    models = tuple(options.model or (each.name for each in MODELS))
    return run(
        NAME,
        options.output,
        lambda progress: measured(options.traces, wanted, models, progress),
        (TraceMissingError, BacktestError),
    )


def measured(folder: Path, wanted: tuple[Recording, ...], models: Sequence[str], progress: Progress) -> Report:
    """Replay the traces that are there. Raises TraceMissingError, BacktestError."""
    there = [each for each in wanted if (folder / each.file).is_file()]
    message = missing_message(folder, wanted)
    if not there:
        raise TraceMissingError(message)
    if message:
        progress.say(message)
    rows: list[Row] = []
    for recording in there:
        history = recording.read(folder)
        for startup in recording.startups_seconds:
            progress.say(f"{recording.name}, start-up {startup:g} s, {history.steps:,} steps")
            rows += _rows(recording.name, history, BacktestOptions(startup_seconds=startup), models)
    return report(NAME, rows)


def _rows(name: str, history: LoadHistory, options: BacktestOptions, models: Sequence[str]) -> Iterator[Row]:
    load, fleet = history.values[0], fleet_settings(history, options)
    task = task_for(options.startup_seconds, history.step_seconds, options.settings, options.down_window_seconds)
    forecasts, cpu_seconds = {}, {}
    for model in (each for each in MODELS if each.name in models):
        began = time.process_time()
        forecasts[model.name] = rolling_forecasts(model, history, task, RollingOptions())
        cpu_seconds[model.name] = time.process_time() - began
    auto = run_auto(history, forecasts, task, fleet)
    capacities = {each: capacity_of(load, found.upper[0], task.headroom_ratio) for each, found in forecasts.items()}
    capacities[AUTO] = auto.capacity
    for part, judged in _parts(history, options):
        compared = {each: _compared(load, capacity, judged, fleet) for each, capacity in capacities.items()}
        used = [model for model, counts in zip(auto.in_use, judged, strict=True) if counts]
        yield {
            "trace": name,
            "startup_seconds": options.startup_seconds,
            "part": part,
            **_cells("auto", compared[AUTO]),
            "auto_uses": max(sorted(set(used)), key=used.count),
            **_cells("quantile", compared.get(ModelName.QUANTILE.value)),
            **_best_other(compared),
            "quantile_cpu_seconds": cpu_seconds.get(ModelName.QUANTILE.value),
            "all_cpu_seconds": sum(cpu_seconds.values()),
            "errors": 0,
        }


def _parts(history: LoadHistory, options: BacktestOptions) -> Iterator[tuple[str, BoolArray]]:
    first = warm_up_steps(history, options)
    middle = (first + history.steps) // 2
    steps = np.arange(history.steps)
    yield "whole", steps >= first
    yield "first half", (steps >= first) & (steps < middle)
    yield "second half", steps >= middle


def _compared(load: FloatArray, capacity: FloatArray, judged: BoolArray, fleet: FleetSettings) -> Comparison:
    found = measure(load, simulate(desired_replicas(capacity, fleet.load_per_replica), fleet), judged, fleet)
    points = reaching(frontier(load, judged, fleet), found.replica_hours, load, judged, fleet)
    return compare(found, points)


def _cells(name: str, found: Comparison | None) -> dict[str, Cell]:
    if found is None:
        return {}
    return {
        f"{name}_cost_as_headroom_ratio": found.cost_as_headroom_ratio,
        f"{name}_tau_under_versus_headroom": found.tau_under_versus_headroom,
        f"{name}_theta_under_versus_headroom": found.theta_under_versus_headroom,
        f"{name}_lost_load_versus_headroom": found.lost_load_versus_headroom,
        f"{name}_changes_versus_headroom": found.changes_versus_headroom,
    }


def _best_other(compared: Mapping[str, Comparison]) -> dict[str, Cell]:
    """Return the other model with the smallest shortage in hindsight."""
    others = {
        each: found.tau_under_versus_headroom
        for each, found in compared.items()
        if each not in {AUTO, ModelName.QUANTILE.value} | YARDSTICKS and found.tau_under_versus_headroom is not None
    }
    if not others:
        return {}
    best = min(others, key=lambda each: others[each] or 0.0)
    return {"best_other": best, **_cells("best_other", compared[best])}


if __name__ == "__main__":
    sys.exit(main())
