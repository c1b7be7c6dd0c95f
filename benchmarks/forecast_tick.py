"""What a poll of thousands of predicted targets costs: `python -m benchmarks.forecast_tick --series 10000`.

Ten recommendations with `forEach` share the series. Each tick does, in one thread and with the recommender's own parts,
what a poll does: it asks each query of a stand-in for Prometheus in another process, takes the answer into the history,
forecasts, decides every target, prepares the metrics, and hands the memories to a store. A row is one step of the tick;
the last one is the tick as a whole, which has to fit into 10 s on one core. Fits of models run in processes of their
own and are not part of it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.sources.prometheus.client import PrometheusClient
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import UNPACED
from benchmarks.load_answers import load_answers
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.tally import quantile
from benchmarks.usage import usage
from recommender.configuration.recommender_configuration import Configuration
from recommender.decisions.inputs import Inputs
from recommender.decisions.loads.inputs import LoadInput
from recommender.decisions.policy_settings import RecommendationPolicy
from recommender.decisions.publication import Publication
from recommender.decisions.record import Status
from recommender.kinds.kind import Recommendation
from recommender.kinds.predictive.predictive_settings import ForEach, ModelName, PredictiveSettings
from recommender.kinds.table import all_kinds
from recommender.outputs.metrics import RecommendationMetrics
from recommender.running.history_cache import HistoryCache
from recommender.running.loads.delays import DelayMeter
from recommender.running.loads.histories import TargetHistory
from recommender.running.loads.learned_models import LearnedModels
from recommender.running.loads.needs import load_needs_of
from recommender.running.loads.predicting import Predictor
from recommender.running.loads.reading import loads_of
from recommender.running.memory.folder import FolderMemoryStore
from recommender.running.memory.memories import Memories
from recommender.running.plans import plan_of
from recommender.running.poll_decisions import PollDecisions
from recommender.running.query_values import QueryValues

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapter.foundation.sources.prometheus.decoding import Sample
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row
    from recommender.decisions.loads.inputs import LoadInputs
    from recommender.running.loads.needs import LoadNeed
    from recommender.running.loads.reading import Target

NAME: Final = "forecast_tick"
QUERIES: Final = 10
POLL_SECONDS: Final = 10.0
STEPS: Final = ("query", "history", "forecast", "decide", "metrics", "memory")


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure."""

    series: int
    ticks: int
    model: ModelName
    past_steps: int = 90
    """Steps of history that exist before the first tick that counts."""


@dataclass(slots=True)
class _Spent:
    """Seconds of each tick by step."""

    wall: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @contextmanager
    def on(self, step: str) -> Iterator[None]:
        """Measure a step of the present tick."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall[step].append(time.perf_counter() - wall)
        self.cpu[step] += time.process_time() - cpu


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 where a target had no value."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{NAME}", description=__doc__.partition("\n")[0])
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--ticks", type=int, default=10)
    parser.add_argument("--model", default="linear", choices=("headroom", "linear", "polynomial"))
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    settings = Settings(options.series, options.ticks, ModelName(options.model))
    return run(NAME, options.output, lambda progress: measure(settings, progress))


def measure(settings: Settings, progress: Progress) -> Report:
    """Run everything and return the report."""
    with (
        load_answers(settings.series // QUERIES) as url,
        tempfile.TemporaryDirectory(prefix="tidewatch-bench-") as folder,
    ):
        ticker = Ticker(settings, url, Path(folder))
        spent, errors = _Spent(), 0
        for tick in range(settings.ticks + 1):
            progress.say(f"tick {tick} of {settings.ticks}")
            # The first one loads what is loaded once.
            errors += ticker.tick(spent if tick else _Spent(), tick)
        ticker.close()
        return report(
            NAME, list(_rows(settings, spent, errors, len(ticker.metrics.text()))), model=settings.model.value
        )


def _rows(settings: Settings, spent: _Spent, errors: int, metrics_bytes: int) -> Iterator[Row]:
    totals = [sum(spent.wall[step][tick] for step in STEPS) for tick in range(settings.ticks)]
    every = {**{step: spent.wall[step] for step in STEPS}, "tick": totals}
    for step, seconds in every.items():
        is_whole = step == "tick"
        cpu_seconds = sum(spent.cpu.values()) if is_whole else spent.cpu[step]
        yield {
            "step": step,
            "series": settings.series,
            "p50_ms": _milliseconds(quantile(sorted(seconds), 0.5)),
            "p99_ms": _milliseconds(quantile(sorted(seconds), 0.99)),
            "share_percent": round(100.0 * sum(seconds) / sum(totals), 1),
            "cpu_seconds": round(cpu_seconds / settings.ticks, 3),
            "prometheus_queries": QUERIES if step in {"query", "tick"} else 0,
            "rss_mib": usage(os.getpid()).rss_mib if is_whole else None,
            "metrics_mib": round(metrics_bytes / 2**20, 1) if is_whole else None,
            "errors": errors if is_whole else 0,
        }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000.0 * seconds, 1)


class Ticker:
    """The parts of a poll, one after another."""

    def __init__(self, settings: Settings, url: str, folder: Path) -> None:
        """Fill the histories as earlier polls would have done."""
        self._settings = settings
        self._clock = Clock()
        self._queries = QueryValues(PrometheusClient, UNPACED, 5.0)
        self._queries.use(PrometheusSettings(url))
        recommendations = tuple(_recommendation(number, settings) for number in range(QUERIES))
        configuration = Configuration(poll_interval_seconds=POLL_SECONDS, recommendations=recommendations)
        self._plan = plan_of(configuration)
        self._needs = sorted(load_needs_of(configuration), key=lambda need: need.name)
        self._predictor, self._delays = Predictor(LearnedModels()), DelayMeter()
        self._memories = Memories(FolderMemoryStore(folder))
        self._decisions = PollDecisions(self._memories, _Nothing(), self._clock)
        self._shown = HistoryCache(folder / "history.sqlite", lambda: None)
        self.metrics = RecommendationMetrics(lambda: True, all_kinds())
        self._histories = {need.name: TargetHistory(need, settings.series // QUERIES) for need in self._needs}
        self._began = time.time()
        for need in self._needs:
            self._fill(need)

    def tick(self, spent: _Spent, number: int) -> int:
        """Do one poll; return how many targets have no value."""
        now = self._began + POLL_SECONDS * number
        with spent.on("query"):
            answers = {
                need.name: loads_of(self._asked(need), need.settings.for_each, "").values for need in self._needs
            }
        with spent.on("history"):
            for need in self._needs:
                self._histories[need.name].note(answers[need.name], now)
        with spent.on("forecast"):
            loads = {need.name: self._forecast(need, answers[need.name], now) for need in self._needs}
        with spent.on("decide"):
            decided = self._decisions.decided(self._plan, Inputs(loads=loads), now)
            records = tuple(decision.record for each in decided for decision in each.decisions)
        with spent.on("metrics"):
            valid_until = time.time() + 3600.0
            self.metrics.publish(Publication(leads=True, time=now, valid_until=valid_until, records=records))
            self._shown.add(now, records)
        with spent.on("memory"):
            for each in decided:
                if each.memory is not None:
                    self._memories.remember(each.name, each.memory)
        return self._settings.series - sum(record.status is Status.OK for record in records)

    def close(self) -> None:
        """Close the connections."""
        self._queries.close()

    def _asked(self, need: LoadNeed) -> Sequence[Sample]:
        answer = self._queries.samples(need.query)
        assert not isinstance(answer, Unknown), answer.reason
        return answer.value

    def _forecast(self, need: LoadNeed, values: Mapping[Target, float], now: float) -> LoadInputs:
        delays = self._delays.polled(need, sum(values.values()), now)
        found = self._predictor.predictions(need, delays, self._histories[need.name], values, now)
        return {target: Observed(LoadInput(prediction, delays), now) for target, prediction in found.items()}

    def _fill(self, need: LoadNeed) -> None:
        values = loads_of(self._asked(need), need.settings.for_each, "").values
        history = self._histories[need.name]
        for step in range(self._settings.past_steps, 0, -1):
            factor = 1.0 - 0.002 * step
            past = {target: factor * value for target, value in values.items()}
            history.note(past, self._began - step * history.step_seconds)


class _Nothing:
    def decided(self, recommendation: str, seconds: float) -> None:
        """Record nothing."""


def _recommendation(number: int, settings: Settings) -> Recommendation:
    subject = PredictiveSettings(
        load=f"load_{number}",
        load_per_replica=10.0,
        horizon_seconds=60.0,
        model=settings.model,
        for_each=ForEach("namespace", "deployment"),
    )
    return Recommendation(RecommendationPolicy(f"tenants-{number}", "predictive"), subject)


if __name__ == "__main__":
    sys.exit(main())
