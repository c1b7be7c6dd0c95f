"""Recommendations as Prometheus metrics: their text is made once for each poll, and served at each scrape.

The names and labels are an interface (`docs/recommender-outputs.md`): rules, dashboards and alerts use them. With
thousands of targets a scrape must not hold up the thread that also answers health checks, so it only copies bytes.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recommender.decisions.record import Status
from recommender.decisions.summary import WORST_FIRST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from recommender.decisions.publication import Publication
    from recommender.decisions.record import Prediction, Record, TargetReference

_WITH_VALUE = frozenset({Status.OK, Status.HELD})
_HELP: Final = {
    "tidewatch_recommended_replicas": "Replicas after all constraints. A recommendation without a valid value has no "
    "sample.",
    "tidewatch_target_replicas": "Replicas that each target had when the value was decided. A target of unknown size "
    "has no sample.",
    "tidewatch_recommendation_step": "The value after each step of the calculation; not with forEach.",
    "tidewatch_recommendation_binding": "1 for the step that decides the value: the last one that changed it; not with "
    "forEach.",
    "tidewatch_recommendation_timestamp_seconds": "When the value was decided, in seconds since the Unix epoch. A held "
    "value keeps its time.",
    "tidewatch_recommendation_status": "1 for the present status of a recommendation, 0 for the others. With forEach "
    "each target has the sample of its present status alone.",
    "tidewatch_observed_load": "The load of a predictive recommendation, as it was observed last.",
    "tidewatch_predicted_load": "The load expected when capacity that is asked for now serves, by quantile.",
    "tidewatch_model_active": "How many targets use this model: 1 or 0 without forEach.",
    "tidewatch_model_shortage_versus_headroom": "Recent shortage of a model divided by that of plain headroom at equal "
    "cost; not with forEach.",
}
"""In the order in which they are served."""

_Samples = dict[str, float]
"""By the text of the labels."""


class RecommendationMetrics:
    """The metrics of each recommendation, on the leader alone. `publish` is for one thread, `text` for any."""

    def __init__(self, is_leader: Callable[[], bool], wall_clock: Callable[[], float] = time.time) -> None:
        """Both functions are called at each scrape: the leadership or the polls may have ended since the last one."""
        self._is_leader = is_leader
        self._wall_clock = wall_clock
        self._prepared: _Prepared | None = None
        self._without_samples = _text({})

    def publish(self, publication: Publication) -> None:
        """Prepare the metrics of the latest records."""
        self._prepared = _Prepared(publication, _text(_samples(publication.records)))

    def text(self) -> bytes:
        """Return the families in Prometheus's text format, version 0.0.4.

        They have samples only while this process leads and its last poll is recent enough.
        """
        prepared = self._prepared
        if prepared is None or not self._is_leader() or not prepared.publication.is_valid(self._wall_clock()):
            return self._without_samples
        return prepared.text


@dataclass(frozen=True, slots=True)
class _Prepared:
    publication: Publication
    text: bytes


def _text(samples: Mapping[str, _Samples]) -> bytes:
    lines: list[str] = []
    for name, text in _HELP.items():
        lines += (f"# HELP {name} {text}", f"# TYPE {name} gauge")
        lines += [f"{name}{{{labels}}} {value!r}" for labels, value in samples.get(name, {}).items()]
    return ("\n".join(lines) + "\n").encode()


def _samples(records: Sequence[Record]) -> dict[str, _Samples]:
    """Return the samples of each family; of several records that would expose the same series, one does."""
    found: dict[str, _Samples] = {name: {} for name in _HELP}
    worst: dict[str, Status] = {}
    active: dict[tuple[str, str], int] = {}
    for record in records:
        name = f'recommendation="{_escaped(record.name)}"'
        if record.each is None:
            status = worst.get(name, Status.OK)
            worst[name] = min(status, record.status, key=WORST_FIRST.index)
        else:
            labels = f'{name},status="{record.status.value}",{_target(record.each)}'
            found["tidewatch_recommendation_status"].setdefault(labels, 1.0)
        if record.status in _WITH_VALUE:
            _add_value(found, record, name)
            if record.each is None:
                _add_steps(found, record, name)
            if record.prediction is not None:
                in_use = (name, record.prediction.model)
                active[in_use] = active.get(in_use, 0) + 1
                _add_prediction(found, record, record.prediction, name)
    for name, present in worst.items():
        for status in Status:
            labels = f'{name},status="{status.value}"'
            found["tidewatch_recommendation_status"][labels] = float(status is present)
    for (of_name, model), count in active.items():
        found["tidewatch_model_active"][f'{of_name},model="{_escaped(model)}"'] = float(count)
    return found


def _add_value(found: dict[str, _Samples], record: Record, name: str) -> None:
    for target in _targets(record):
        if record.replicas is not None:
            labels = f"{name},{_target(target)}"
            found["tidewatch_recommended_replicas"].setdefault(labels, float(record.replicas))
    for outcome in record.targets:
        if outcome.current_replicas is not None:
            labels = f"{name},{_target(outcome.target)}"
            found["tidewatch_target_replicas"][labels] = float(outcome.current_replicas)
    times = found["tidewatch_recommendation_timestamp_seconds"]
    labels = name if record.each is None else f"{name},{_target(record.each)}"
    # Of several records with one name, the oldest is the one to watch.
    times[labels] = float(min(record.time, times.get(labels, math.inf)))


def _add_steps(found: dict[str, _Samples], record: Record, name: str) -> None:
    for step in record.steps:
        if math.isfinite(step.value):
            found["tidewatch_recommendation_step"][f'{name},step="{_escaped(step.step)}"'] = float(step.value)
    if record.binding is not None:
        found["tidewatch_recommendation_binding"][f'{name},step="{_escaped(record.binding)}"'] = 1.0


def _add_prediction(found: dict[str, _Samples], record: Record, prediction: Prediction, name: str) -> None:
    load = prediction.load
    for target in _targets(record):
        labels = f"{name},{_target(target)}"
        found["tidewatch_observed_load"].setdefault(labels, float(load.now))
        for quantile, value in load.quantiles.items():
            of_quantile = f'{labels},quantile="{_escaped(quantile)}"'
            found["tidewatch_predicted_load"].setdefault(of_quantile, float(value))
    if record.each is None:
        for model, shortage in prediction.shortage_versus_headroom.items():
            if shortage is not None:
                labels = f'{name},model="{_escaped(model)}"'
                found["tidewatch_model_shortage_versus_headroom"][labels] = float(shortage)


def _targets(record: Record) -> Iterable[TargetReference | None]:
    return [outcome.target for outcome in record.targets] or [None]


def _target(target: TargetReference | None) -> str:
    if target is None:
        return 'target_namespace="",target_kind="",target_name=""'
    namespace, kind, name = _escaped(target.namespace), _escaped(target.kind), _escaped(target.name)
    return f'target_namespace="{namespace}",target_kind="{kind}",target_name="{name}"'


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
