"""Forecasts that are made up, shown by the recommender's own collectors."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, generate_latest

from adapter.foundation.sources.kubernetes.kubernetes_telemetry import LeaseMetrics
from recommender.child_processes.parent import ChildLimits, Children
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.publication import Publication
from recommender.decisions.record import Record, Status, TargetAction, TargetOutcome, TargetReference
from recommender.kinds.table import all_kinds
from recommender.outputs.metrics import RecommendationMetrics
from recommender.running.loads.histories import Coverage
from recommender.running.loads.load_telemetry import LoadTelemetry

if TYPE_CHECKING:
    from demo.machine.exporter import Exporter

PREDICTED_SECONDS: Final = 2
"""How far ahead forecasts are."""
_WAVE_SECONDS: Final = 20.0
_TARGET: Final = TargetReference("apps/v1", "Deployment", "chat", "gateway")
_PER_REPLICA: Final = 25_000.0


class PredictionsAtWork:
    """A load that comes in waves, and forecasts of it."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        self._registry = CollectorRegistry(auto_describe=True)
        self._metrics = RecommendationMetrics(lambda: True, all_kinds())
        LeaseMetrics(self._registry, "tidewatch_recommender").show(lambda: True)
        self._loads = LoadTelemetry(self._registry)
        self._children = Children(self._registry, "tidewatch_recommender", most=1)

    def work(self, number: int) -> None:
        """Make a forecast, and be scraped with it; now and then download, fit, and fail to."""
        now = time.time()
        self._metrics.publish(
            Publication(leads=True, time=now, valid_until=now + 60.0, records=(_record(now, number),))
        )
        lacking = 86_400.0 * max(0, 14 - number // 10)
        self._loads.covered("chat", Coverage(1000, 1, 14 * 86_400.0 - lacking, lacking))
        self._loads.series_left_out("chat", number // 50)
        self._loads.downloaded("chat", "timeout" if number % 3 == 0 else "ok")
        self._loads.forecast_bounded("chat", "linear")
        if number % 3 == 0:
            model = "seasonal" if number % 6 else "quantile"
            self._children.run(model, math.sqrt, (float(number),), ChildLimits(seconds=30.0))
            self._loads.learned("chat", model, "deadline" if number % 36 == 0 else "ok")
        self._exporter.publish((generate_latest(self._registry) + self._metrics.text()).decode())

    def close(self) -> None:
        """End the children."""
        self._children.close()


def _record(now: float, number: int) -> Record:
    load, median = _load(now), _load(now + PREDICTED_SECONDS) * (1 + 0.02 * math.sin(number))
    upper = median * 1.1
    replicas, present = math.ceil(upper / _PER_REPLICA), math.ceil(load * 1.1 / _PER_REPLICA)
    model = "quantile" if number > 100 else "headroom"
    return Record(
        name="chat",
        type="predictive",
        time=now,
        status=Status.OK,
        message="",
        replicas=replicas,
        targets=(TargetOutcome(_TARGET, present, TargetAction.METRIC, recommended_replicas=replicas),),
        details=Prediction(
            PredictedLoad(load, upper, now + PREDICTED_SECONDS, {"0.5": median, "0.95": upper}),
            model,
            "made up",
            {"quantile": 1.2 * math.exp(-number / 100), "linear": 1.4},
            cost_above_load_ratio=0.2 + 0.05 * math.sin(number / 10),
            budget_ratio=0.25,
        ),
    )


def _load(time_seconds: float) -> float:
    return 150_000.0 + 100_000.0 * math.sin(time_seconds * 2 * math.pi / _WAVE_SECONDS)
