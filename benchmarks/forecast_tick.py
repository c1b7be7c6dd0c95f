"""The cost of a poll of thousands of predicted targets: `python -m benchmarks.forecast_tick --series 10000`.

Ten recommendations with `forEach` share the series, each of which has two weeks of history. Each tick does what a poll
does, in one thread and with the recommender's own parts: it sends each query to a stand-in for Prometheus in another
process, adds the answer to the history, forecasts, decides every target, prepares the metrics, and passes the memories
to a store. By default, every target has its own blend of all models that serve many targets, which is more than any
choice leaves. A row is one step of the tick. `verdicts` is the processor time that new verdicts take in a child
process, as a share of a tick: it is measured for some targets, and each verdict is renewed as often as in a
recommender. The last row is the whole tick, which must take at most 10 s on one core. Fits, which take a few seconds
every two days, are not part of it.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from prometheus_client import CollectorRegistry

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import UNPACED
from benchmarks.load_answers import load_answers
from benchmarks.options import between, command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.tally import quantile
from benchmarks.usage import usage
from recommender.child_processes.parent import ChildLimits, Children
from recommender.configuration.recommender_configuration import Configuration
from recommender.decisions.inputs import Inputs
from recommender.decisions.loads.load_inputs import LoadInput
from recommender.decisions.policy_settings import RecommendationPolicy
from recommender.decisions.publication import Publication
from recommender.decisions.record import Status
from recommender.kinds.kind import Recommendation
from recommender.kinds.predictive.choice.blend import Blend, Part
from recommender.kinds.predictive.choice.series_proof import ProvenSeries, proof_of
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.learning import JudgingTerms, SeriesVerdict
from recommender.kinds.predictive.many_series import shared_fits, verdicts_by_series
from recommender.kinds.predictive.models.table import MODELS
from recommender.kinds.predictive.predictive_settings import ForEach, ModelName, PredictiveSettings
from recommender.kinds.predictive.simulation.bill import Bill
from recommender.kinds.table import all_kinds
from recommender.outputs.metrics import RecommendationMetrics
from recommender.running.history.history_cache import HistoryCache
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.loads.histories.load_histories import TargetHistory
from recommender.running.loads.histories.sample_ring import ROWS_A_BLOCK
from recommender.running.loads.histories.target_loads import loads_of
from recommender.running.loads.learned.forecast_tasks import fleet_of, task_of
from recommender.running.loads.learned.model_choices import Learned, LearnedModels
from recommender.running.loads.learning.learner_of_many import SAMPLED_TARGETS
from recommender.running.loads.learning.learning_rules import CATCH_UP_SECONDS, LONGEST_CHILD_SECONDS, known_past
from recommender.running.loads.load_needs import load_needs_of
from recommender.running.loads.predictions.delay_measurement import DelayMeter
from recommender.running.loads.predictions.predicting import FITTED_ALONE, POOLED, Predictor
from recommender.running.memory.folder_store import FolderMemoryStore
from recommender.running.memory.memories import Memories
from recommender.running.polls.poll_decisions import PollDecisions
from recommender.running.queries.query_values import QueryValues

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapter.foundation.sources.prometheus.answers.decoding import Sample
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row
    from recommender.decisions.loads.load_inputs import LoadInputs
    from recommender.kinds.predictive.choice.series_proof import SeriesProof
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.load_needs import LoadNeed

NAME: Final = "forecast_tick"
QUERIES: Final = 10
POLL_SECONDS: Final = 10.0
STEPS: Final = ("query", "history", "forecast", "decide", "metrics", "memory", "verdicts")
ALL: Final = "all"
SERVING_MANY: Final = tuple(
    model.name for model in MODELS if model.name not in {ModelName.REACTIVE, ModelName.HEADROOM, *FITTED_ALONE}
)
"""The models that serve many targets."""
_JUDGED_AT_ONCE: Final = 40
_HISTORY_SECONDS: Final = 14 * DAY_SECONDS


@dataclass(frozen=True, slots=True)
class Settings:
    """The number of series, and the number of measured ticks."""

    series: int
    ticks: int
    model: str
    """The name of a model, or `all`."""
    past_seconds: float = _HISTORY_SECONDS
    """How much history exists before the first tick that counts."""

    @property
    def by_query(self) -> dict[str, int]:
        """Return how many of the series each query has, by its text; no query is without a series."""
        least, more = divmod(self.series, QUERIES)
        return {f"load_{number}": least + (number < more) for number in range(min(QUERIES, self.series))}

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models that forecast for each target."""
        return SERVING_MANY if self.model == ALL else (self.model,)


@dataclass(slots=True)
class _Spent:
    """The seconds that each step takes in each tick."""

    wall: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @contextmanager
    def on(self, step: str) -> Iterator[None]:
        """Measure a step of the current tick."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall[step].append(time.perf_counter() - wall)
        self.cpu[step] += time.process_time() - cpu


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if a target had no value."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--series", type=between(1, 1_000_000), default=10_000)
    parser.add_argument("--ticks", type=between(1, 1000), default=10)
    parser.add_argument("--model", default=ALL, choices=(ALL, ModelName.HEADROOM.value, *SERVING_MANY))
    options = parser.parse_args(arguments)
    settings = Settings(options.series, options.ticks, options.model)
    return run(NAME, options.output, lambda progress: measure(settings, progress))


def measure(settings: Settings, progress: Progress) -> Report:
    """Run everything and return the report."""
    with (
        load_answers(settings.by_query) as url,
        tempfile.TemporaryDirectory(prefix="tidewatch-bench-") as folder,
    ):
        ticker = Ticker(settings, url, Path(folder))
        spent, errors = _Spent(), 0
        for tick in range(settings.ticks + 1):
            progress.say(f"tick {tick} of {settings.ticks}")
            # The first tick also loads everything that is loaded only once.
            errors += ticker.tick(spent if tick else _Spent(), tick)
        progress.say("verdicts")
        seconds = ticker.verdict_seconds()
        spent.wall["verdicts"] = [seconds] * settings.ticks
        spent.cpu["verdicts"] = seconds * settings.ticks
        ticker.close()
        return report(NAME, list(_rows(settings, spent, errors, len(ticker.metrics.text()))), model=settings.model)


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
            "prometheus_queries": len(settings.by_query) if step in {"query", "tick"} else 0,
            "rss_mib": usage(os.getpid()).rss_mib if is_whole else None,
            "metrics_mib": round(metrics_bytes / 2**20, 1) if is_whole else None,
            "errors": errors if is_whole else 0,
        }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000.0 * seconds, 1)


class Ticker:
    """Carries out the steps of a poll, one after another."""

    def __init__(self, settings: Settings, url: str, folder: Path) -> None:
        """Fill the histories as earlier polls would have."""
        self._settings = settings
        self._clock = Clock()
        self._queries = QueryValues(PrometheusClient(PrometheusSettings(url)), UNPACED, 5.0)
        recommendations = tuple(_recommendation(query) for query in settings.by_query)
        configuration = Configuration(poll_interval_seconds=POLL_SECONDS, recommendations=recommendations)
        self._plan = plan_of(configuration)
        self._needs = sorted(load_needs_of(configuration), key=lambda need: need.name)
        self._learned_models = LearnedModels()
        self._predictor, self._delays = Predictor(self._learned_models), DelayMeter()
        self._children = Children(CollectorRegistry(), "benchmark", most=1)
        self._memories = Memories(FolderMemoryStore(folder))
        self._decisions = PollDecisions(self._memories, self._clock)
        self._shown = HistoryCache(folder / "history.sqlite", lambda: None)
        self.metrics = RecommendationMetrics(lambda: True, all_kinds())
        self._histories = {need.name: TargetHistory(need, settings.series) for need in self._needs}
        step_seconds = self._histories[self._needs[0].name].step_seconds
        # The first tick that counts is the first of a step of the grid: in each of them some forecasts are renewed.
        self._began = (time.time() // step_seconds + 0.5) * step_seconds - POLL_SECONDS / 2
        for need in self._needs:
            self._fill(need)
        self._learn()

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
            decided = self._decisions.decide(self._plan, Inputs(loads=loads), now)
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
        self._children.close()

    def _asked(self, need: LoadNeed) -> Sequence[Sample]:
        answer = self._queries.samples(need.query)
        assert not isinstance(answer, Unknown), answer.reason
        return answer.value

    def _forecast(self, need: LoadNeed, values: Mapping[Target, float], now: float) -> LoadInputs:
        delays = self._delays.take_loads(need, sum(values.values()), now)
        found = self._predictor.predictions(need, delays, self._histories[need.name], values, now)
        return {target: Observed(LoadInput(prediction, delays), now) for target, prediction in found.items()}

    def verdict_seconds(self) -> float:
        """Return how much processor time new verdicts take in a tick."""
        need = self._needs[0]
        learned = self._learned_models.get(need)
        assert learned is not None, "the models were learned at the start"
        history = self._histories[need.name]
        some = history.targets()[:_JUDGED_AT_ONCE]
        fleet = fleet_of(need, learned.task, history.step_seconds)
        past = known_past(history, some, self._began)
        terms = JudgingTerms("auto", learned.task, fleet)
        arguments = (self._settings.models, dict(learned.shared), past)
        limits = ChildLimits(seconds=LONGEST_CHILD_SECONDS)
        # The first verdicts begin new proofs; only later ones, which continue from these, are measured.
        first = self._children.run("choice", verdicts_by_series, (terms, *arguments), limits)
        proofs = tuple(None if each is None else each.proof for each in first)
        before = _children_seconds()
        found = self._children.run("choice", verdicts_by_series, (replace(terms, proofs=proofs), *arguments), limits)
        assert all(found), "every target has a verdict"
        each = (_children_seconds() - before) / len(some)
        # There is a pause as long as the work whenever the work takes longer than an hour.
        return self._settings.series * each * POLL_SECONDS / max(CATCH_UP_SECONDS, 2 * self._settings.series * each)

    def _fill(self, need: LoadNeed) -> None:
        values = loads_of(self._asked(need), need.settings.for_each, "").values
        history, targets = self._histories[need.name], list(values)
        count = max(2, int(self._settings.past_seconds / history.step_seconds))
        last = int(self._began / history.step_seconds)
        history.note(values, self._began)
        history.restore(last - count + 1, np.ones(count, dtype=np.bool_))
        times = np.arange(last - count + 1, last + 1) * history.step_seconds
        rng = np.random.default_rng(0)
        for place in range(0, len(targets), ROWS_A_BLOCK):
            some = targets[place : place + ROWS_A_BLOCK]
            phases = rng.uniform(0, 2 * np.pi, (len(some), 1))
            shapes = 1 + 0.4 * np.sin(2 * np.pi * times / DAY_SECONDS + phases)
            past = shapes * rng.lognormal(0, 0.05, shapes.shape) * np.array([[values[target]] for target in some])
            history.restore_rows(last - count + 1, some, past.astype(np.float32))

    def _learn(self) -> None:
        """Put the same fits into the learned models of each recommendation, and a separate blend for each target."""
        models = self._settings.models
        for need in self._needs:
            history = self._histories[need.name]
            task = task_of(need, self._delays.delays(need))
            if need is self._needs[0]:
                past = known_past(history, history.targets()[:SAMPLED_TARGETS], self._began)
                names = tuple(name for name in models if name in POOLED)
                limits = ChildLimits(seconds=LONGEST_CHILD_SECONDS)
                fits = self._children.run("fit", shared_fits, (names, past, task), limits) if names else {}
            verdicts = {
                target: SeriesVerdict(
                    models[place % len(models)],
                    f"auto: the blend of target {place}",
                    Blend(0.3, tuple(Part(name, 0.9 / len(models), 0.8 + place % 50 / 100) for name in models)),
                    Bill(0.3, 0.4),
                    dict.fromkeys(models, 0.5 + place % 50 / 100),
                    f"in the last day target {place} was short for 0.1% of the time",
                    _proof(models, self._began, history.step_seconds),
                )
                for place, target in enumerate(history.targets())
            }
            self._learned_models.put(
                need, Learned(task, shared=fits, verdicts=verdicts if models != ("headroom",) else {})
            )


def _proof(models: Sequence[str], now: float, step_seconds: float) -> SeriesProof:
    """Return a proof of these models like the one that each target has."""
    experts = np.full((5, len(models) + 1), 1 / (len(models) + 1))
    record = np.array([0.3, 40.0, 8.0, 50.0, 9.5])
    state = ProvenSeries(now // step_seconds, step_seconds, 9_000.0, 2.0, 0.3, 144.0, record, experts)
    return proof_of(tuple(models), state)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _recommendation(query: str) -> Recommendation:
    subject = PredictiveSettings(
        load=query,
        load_per_replica=10.0,
        horizon_seconds=60.0,
        model=ModelName.AUTO,
        for_each=ForEach("namespace", "deployment"),
    )
    return Recommendation(RecommendationPolicy(query.replace("_", "-"), "predictive"), subject)


if __name__ == "__main__":
    sys.exit(main())
