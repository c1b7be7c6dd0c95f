"""The load of a recommendation at a poll: one query, its targets, and a prediction for each."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.sources.prometheus.answers.decoding import Sample
from recommender.decisions.loads.load_inputs import LoadInput
from recommender.decisions.texts.times import is_fresh
from recommender.running.loads.histories.target_loads import POD_LABEL, LoadSeriesError, loads_of, pods_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.decisions.loads.load_inputs import LoadInputs, PodConnections
    from recommender.kinds.predictive.predictive_settings import ForEach
    from recommender.running.loads.histories.load_histories import TargetHistory
    from recommender.running.loads.histories.target_loads import Target, TargetLoads
    from recommender.running.loads.load_needs import LoadNeed
    from recommender.running.loads.load_telemetry import LoadTelemetry
    from recommender.running.loads.predictions.delay_measurement import DelayMeter
    from recommender.running.loads.predictions.predicting import Predictor
    from recommender.running.queries.backend_queries import BackendQueries
    from recommender.running.queries.query_values import QueryValues

_log = logging.getLogger(__name__)


class KnownHistories(Protocol):
    """The store of histories. For any number of threads."""

    def note(self, need: LoadNeed, values: Mapping[Target, float], time: float) -> None:
        """Take the loads of one poll."""

    def get(self, need: LoadNeed) -> TargetHistory | None:
        """Return the history of a load; None if it has not begun yet."""


def queries_of(queries: BackendQueries) -> Callable[[LoadNeed], QueryValues]:
    """Return a function that returns the queries to the backend of a load."""
    return lambda need: queries.of(need.backend, need.source)


@dataclass(slots=True)
class LoadSource:
    """Returns the load of a recommendation. For any number of threads."""

    queries: Callable[[LoadNeed], QueryValues]
    """Returns the client for the Prometheus of a load."""
    histories: KnownHistories
    delays: DelayMeter
    predictor: Predictor
    telemetry: LoadTelemetry
    _states: StateLog = field(default_factory=lambda: StateLog(_log))

    def load(self, need: LoadNeed) -> Observed[LoadInputs] | Unknown:
        """Return the loads of all targets. Never raises because of an answer; takes as long as two queries at most."""
        observed = self._observe_loads(need)
        if isinstance(observed, Unknown):
            self.delays.note_unanswered(need)
            return observed
        found, now = observed.value, observed.time
        pods = self._pods(need)
        self._report(need, found)
        self.histories.note(need, found.values, now)
        history = self.histories.get(need)
        ages = [now - time for time in found.times.values()]
        delays = self.delays.take_loads(need, sum(found.values.values()), now, ages)
        predictions = self.predictor.predictions(need, delays, history, found.values, now)
        for prediction in predictions.values():
            for model in prediction.bound.models if prediction.bound is not None else ():
                self.telemetry.count_bounded_forecast(need.name, model)
        inputs: dict[Target, Observed[LoadInput] | Unknown] = {
            target: Observed(
                LoadInput(prediction, delays, None if pods is None else pods.get(target, ())), found.times[target]
            )
            for target, prediction in predictions.items()
        }
        inputs |= {target: Unknown(reason) for target, reason in found.unknown.items()}
        return Observed(inputs, now)

    def _observe_loads(self, need: LoadNeed) -> Observed[TargetLoads] | Unknown:
        """Return the loads in the answer of Prometheus."""
        for_each = need.settings.for_each
        answer = self.queries(need).samples(need.query, _target_labels(for_each))
        if isinstance(answer, Unknown):
            return answer
        try:
            return Observed(loads_of(answer.value, for_each, need.query, self._known_targets(need)), answer.time)
        except LoadSeriesError as error:
            return Unknown(str(error))

    def _known_targets(self, need: LoadNeed) -> frozenset[Target]:
        history = self.histories.get(need)
        return frozenset() if history is None else frozenset(history.targets())

    def _pods(self, need: LoadNeed) -> Mapping[Target, tuple[PodConnections, ...]] | None:
        """Return the pods by target; None if they are not used, or not known at present."""
        connections = need.settings.connections
        if connections is None or connections.metric is None:
            return None
        for_each, key = need.settings.for_each, f"{need.name} pods"
        answer = self.queries(need).samples(connections.metric, (*_target_labels(for_each), POD_LABEL))
        if isinstance(answer, Unknown):
            self._without_pods(key, need, answer.reason)
            return None
        fresh = [is_fresh(each.timestamp, answer.time, need.stale_after_seconds) for each in answer.value]
        if fresh and not any(fresh):
            self._without_pods(key, need, f"the newest sample of {connections.metric} is too old")
            return None
        # A pod whose sample is too old probably exists, but its room is not known.
        samples = (
            each if is_new else Sample(each.labels, math.nan, each.timestamp)
            for each, is_new in zip(answer.value, fresh, strict=True)
        )
        try:
            pods = pods_of(samples, connections, for_each)
        except LoadSeriesError as error:
            self._without_pods(key, need, str(error))
            return None
        self._states.recovered(key, f"recommendation {need.name}: the connections of the pods are known again")
        return pods

    def _without_pods(self, key: str, need: LoadNeed, reason: str) -> None:
        message = f"recommendation {need.name}: the connections of the pods are not known: {reason}"
        self._states.failed(key, message, level=logging.WARNING)

    def _report(self, need: LoadNeed, found: TargetLoads) -> None:
        self.telemetry.set_series_left_out(need.name, found.left_out)
        key = f"{need.name} series"
        if found.problems:
            message = f"recommendation {need.name}: {'; '.join(found.problems)}"
            self._states.failed(key, message, level=logging.WARNING)
        else:
            self._states.recovered(key, f"recommendation {need.name}: every series has a target again")


def _target_labels(for_each: ForEach | None) -> tuple[str, ...]:
    """Return the labels that name the target of a series."""
    return () if for_each is None else (for_each.namespace_label, for_each.name_label)
