"""Made-up forecasts, shown by the recommender's own collectors."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, generate_latest

from adapter.foundation.service.runtime.followed_configuration import ReloadMetrics
from recommender.child_processes.parent import ChildLimits, Children
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.publication import Publication
from recommender.decisions.record import Record, Status, Step, TargetAction, TargetOutcome, TargetReference
from recommender.kinds.table import all_kinds
from recommender.leader_election.lease_events import LeaseMetrics
from recommender.outputs.metrics import RecommendationMetrics
from recommender.outputs.output_telemetry import RecommenderTelemetry
from recommender.outputs.scale_results import ScaleResult
from recommender.running.loads.load_telemetry import Coverage, LoadTelemetry
from tests.helm.workloads import KIND, LIMIT, NAME, NAMESPACE, RECOMMENDATION, Fleet

if TYPE_CHECKING:
    from demo.machine.exporter import Exporter

PREDICTED_SECONDS: Final = 2
"""How far ahead the forecasts are."""
_WAVE_SECONDS: Final = 60.0
_BRAKE_SECONDS: Final = 20.0
_TARGET: Final = TargetReference("apps/v1", KIND, NAMESPACE, NAME)


class PredictionsAtWork:
    """A load that comes in waves, and forecasts of it."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        self._registry = CollectorRegistry(auto_describe=True)
        self._metrics = RecommendationMetrics(lambda: True, all_kinds())
        LeaseMetrics(self._registry, "tidewatch_recommender").show(lambda: True)
        self._loads = LoadTelemetry(self._registry)
        self._children = Children(self._registry, "tidewatch_recommender", most=1)
        self._fleet = Fleet()
        self._telemetry = RecommenderTelemetry(self._registry)
        self._telemetry.add_scale_output(RECOMMENDATION)
        self._reloads = ReloadMetrics(self._registry, "tidewatch_recommender")
        self._scaled = 0.0

    def work(self, number: int) -> None:
        """Make a forecast and expose it for a scrape; in some calls also download and fit, with or without success."""
        now = time.time()
        record = _record(now, number)
        self._metrics.publish(Publication(leads=True, time=now, valid_until=now + 60.0, records=(record,)))
        self._scale(record)
        lacking = 86_400.0 * max(0, 14 - number // 10)
        self._loads.set_coverage(RECOMMENDATION, Coverage(1000, 1, 14 * 86_400.0 - lacking, lacking))
        self._loads.set_series_left_out(RECOMMENDATION, number // 50)
        self._loads.count_download(RECOMMENDATION, "timeout" if number % 3 == 0 else "ok")
        self._loads.count_bounded_forecast(RECOMMENDATION, "linear")
        if number % 3 == 0:
            model = "seasonal" if number % 6 else "quantile"
            self._children.run(model, math.sqrt, (float(number),), ChildLimits(seconds=30.0))
            self._loads.count_trial(RECOMMENDATION, model, "deadline" if number % 36 == 0 else "ok")
        scraped = (generate_latest(self._registry) + self._metrics.text()).decode()
        replicas = record.targets[0].current_replicas or 0
        self._exporter.publish(scraped + self._fleet.text(_load(now), replicas, record.replicas or 0))

    def _scale(self, record: Record) -> None:
        """Count a scale call for a change of the size, but not too often."""
        current = record.targets[0].current_replicas
        if record.replicas != current and record.time - self._scaled > _BRAKE_SECONDS:
            self._scaled = record.time
            self._telemetry.count_scale_call(RECOMMENDATION, ScaleResult.OK)

    def close(self) -> None:
        """End the child processes."""
        self._children.close()


def _record(now: float, number: int) -> Record:
    load, median = _load(now), _load(now + PREDICTED_SECONDS) * (1 + 0.02 * math.sin(number))
    upper = median * 1.1
    replicas, present = math.ceil(upper / LIMIT), math.ceil(load * 1.1 / LIMIT)
    model = "quantile" if number > 100 else "headroom"
    return Record(
        name=RECOMMENDATION,
        type="predictive",
        time=now,
        status=Status.OK,
        message="",
        replicas=replicas,
        steps=(
            Step(f"{model}/forecast", replicas, f"ceil({upper:.0f} / {LIMIT})"),
            Step("reserve/load", present, f"ceil({load * 1.1:.0f} / {LIMIT})"),
        ),
        binding=f"{model}/forecast" if replicas > present else "reserve/load",
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
