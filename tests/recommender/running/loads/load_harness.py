"""Loads with a Prometheus, and with clocks that tests set."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import UNPACED
from recommender.kinds.predictive.predictive_settings import ForEach, ModelName, PredictiveSettings
from recommender.running.loads.histories.history_files import LoadFiles
from recommender.running.loads.histories.history_keeping import HistoryKeeper
from recommender.running.loads.learned.model_choices import LearnedModels
from recommender.running.loads.load_needs import LoadNeed
from recommender.running.loads.load_telemetry import LoadTelemetry
from recommender.running.loads.predictions.delay_measurement import DelayMeter
from recommender.running.loads.predictions.poll_loads import LoadSource
from recommender.running.loads.predictions.predicting import Predictor
from recommender.running.queries.query_values import QueryValues

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.sources.prometheus.answers.ranges import RangeAnswer

FOR_EACH = ForEach("namespace", "deployment")


def need(query: str, **settings: Any) -> LoadNeed:  # noqa: ANN401 - settings of many types
    usual = PredictiveSettings(load=query, horizon_seconds=60.0, load_per_replica=10.0, model=ModelName.HEADROOM)
    return LoadNeed("shop", replace(usual, **settings), 10.0)


@dataclass(slots=True)
class Clocks:
    """Clocks that do not move."""

    wall: float = field(default_factory=time.time)
    monotonic: float = 1000.0

    def pass_seconds(self, seconds: float) -> None:
        self.monotonic += seconds

    def clock(self) -> Clock:
        return Clock(lambda: self.monotonic, lambda: self.wall)


class CountingClient(PrometheusClient):
    """A client that records which ranges are requested."""

    requested: list[tuple[float, float]]

    def range(self, query: str, *, start: float, end: float, **options: Any) -> RangeAnswer:  # noqa: ANN401 - handed on
        self.requested.append((start, end))
        return super().range(query, start=start, end=end, **options)


class LoadHarness:
    """A source of loads with its histories."""

    def __init__(
        self, url: str, state: Path, clocks: Clocks | None = None, learned_models: LearnedModels | None = None
    ) -> None:
        self.clocks = clocks or Clocks()
        self.ranges: list[tuple[float, float]] = []
        self.registry = CollectorRegistry()
        self.ask(PrometheusSettings(url))
        telemetry = LoadTelemetry(self.registry)
        self.files = LoadFiles(state / "loads")
        self.keeper = HistoryKeeper(lambda _need: self.queries.client(), self.files, telemetry, self.clocks.clock())
        self.source = LoadSource(
            lambda _need: self.queries,
            self.keeper,
            DelayMeter(),
            Predictor(learned_models or LearnedModels()),
            telemetry,
        )

    def ask(self, prometheus: PrometheusSettings) -> None:
        """Ask this Prometheus from now on."""
        client = CountingClient(prometheus)
        client.requested = self.ranges
        self.queries = QueryValues(client, UNPACED, 5.0)

    def download(self) -> None:
        """Work until no more requests are sent."""
        before = -1
        while before != len(self.ranges):
            before = len(self.ranges)
            self.clocks.monotonic += 60.0
            self.keeper.work()

    def metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(
            f"tidewatch_recommender_load_{name}", {"recommendation": "shop", **labels}
        )
