"""Judges whether an answer is right (status, objects, names, every value) without any of the adapter's own code."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.fleet_of_pods import CONTAINER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.fleet_of_pods import Fleet
    from benchmarks.kept_connection import Answer

RATE_TOLERANCE_MILLI = 2
"""Prometheus computes rates in floating point, and digits below a thousandth are cut off."""

_SUFFIXES = {"m": 1, "": 1000, "k": 10**6, "M": 10**9, "G": 10**12, "Ki": 1000 << 10, "Mi": 1000 << 20}


class WrongAnswerError(Exception):
    """The answer is wrong; the message says in what way."""


class NewAnswers:
    """Tells new answers from those that equal the one before, so that judging costs the client little."""

    def __init__(self) -> None:
        self._last = b""
        self.size = 0
        """The size of the last body, in bytes."""

    def is_new(self, answer: Answer) -> bool:
        """Return whether the body differs from the last one. Raises WrongAnswerError unless the status is 200."""
        if answer.status != 200:
            raise WrongAnswerError(f"status {answer.status}: {answer.body[:200]!r}")
        if answer.body == self._last:
            return False
        self._last, self.size = answer.body, len(answer.body)
        return True


class _Described(msgspec.Struct, frozen=True):
    kind: str
    namespace: str
    name: str


class _MetricName(msgspec.Struct, frozen=True):
    name: str


class _PodItem(msgspec.Struct, frozen=True, rename={"described": "describedObject"}):
    described: _Described
    metric: _MetricName
    timestamp: str
    value: str


class _PodAnswer(msgspec.Struct, frozen=True):
    kind: str
    items: list[_PodItem]


class _QueueItem(msgspec.Struct, frozen=True, rename={"metric_name": "metricName"}):
    metric_name: str
    timestamp: str
    value: str


class _QueueAnswer(msgspec.Struct, frozen=True):
    kind: str
    items: list[_QueueItem]


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str


class _Container(msgspec.Struct, frozen=True):
    name: str
    usage: dict[str, str]


class _UsageItem(msgspec.Struct, frozen=True):
    metadata: _Metadata
    timestamp: str
    containers: list[_Container]


class _UsageAnswer(msgspec.Struct, frozen=True):
    kind: str
    items: list[_UsageItem]


_pod_answers = msgspec.json.Decoder(_PodAnswer)
_queue_answers = msgspec.json.Decoder(_QueueAnswer)
_usage_answers = msgspec.json.Decoder(_UsageAnswer)


def judge_pods(fleet: Fleet, app: int, status: int, body: bytes) -> float:
    """Return the time of the values (Unix seconds) if they are those of the app's pods; raises WrongAnswerError."""
    answer: _PodAnswer = _decoded(_pod_answers.decode, status, body)
    metric = fleet.metric_of(app)
    if {item.metric.name for item in answer.items} != {fleet.metric_name(metric)}:
        raise WrongAnswerError(f"{fleet.metric_name(metric)} was asked for, the answer has another metric or none")
    if {(item.described.kind, item.described.namespace) for item in answer.items} != {("Pod", fleet.namespace(app))}:
        raise WrongAnswerError(f"not all objects are pods of {fleet.namespace(app)}")
    values = {item.described.name: item.value for item in answer.items}
    expected = {fleet.pod(app, number): fleet.milli(app, number, metric) for number in range(fleet.pods_per_app)}
    if len(answer.items) != len(expected) or values.keys() != expected.keys():
        raise WrongAnswerError(f"{len(expected)} pods were asked for, answered for {[*values]}")
    tolerance = RATE_TOLERANCE_MILLI if metric == 0 else 0
    _compare({pod: milli(value) for pod, value in values.items()}, expected, tolerance)
    return _one_time({item.timestamp for item in answer.items})


def judge_queue(fleet: Fleet, app: int, status: int, body: bytes) -> float:
    """Return the time of the value (Unix seconds) if it is that of the app's queue; raises WrongAnswerError."""
    answer: _QueueAnswer = _decoded(_queue_answers.decode, status, body)
    if len(answer.items) != 1:
        raise WrongAnswerError(f"1 value was expected, not {len(answer.items)}")
    _compare({fleet.queue(app): milli(answer.items[0].value)}, {fleet.queue(app): fleet.queue_milli(app)}, 0)
    return _one_time({item.timestamp for item in answer.items})


def judge_usage(fleet: Fleet, app: int, status: int, body: bytes) -> float:
    """Return the time of the values (Unix seconds) if they are what the app's pods use; raises WrongAnswerError."""
    answer: _UsageAnswer = _decoded(_usage_answers.decode, status, body)
    expected = {fleet.pod(app, number): fleet.usage_milli(app, number) for number in range(fleet.pods_per_app)}
    names = [item.metadata.name for item in answer.items]
    if {item.metadata.namespace for item in answer.items} != {fleet.namespace(app)} or sorted(names) != [*expected]:
        raise WrongAnswerError(f"{len(expected)} pods of {fleet.namespace(app)} were asked for, answered for {names}")
    for item in answer.items:
        if [container.name for container in item.containers] != [CONTAINER]:
            raise WrongAnswerError(f"{item.metadata.name} has one container, {CONTAINER}")
        usage, right = item.containers[0].usage, expected[item.metadata.name]
        if usage.keys() != right.keys():
            raise WrongAnswerError(f"{item.metadata.name}: {sorted(right)} were expected, not {sorted(usage)}")
        for resource, value in usage.items():
            _compare({resource: milli(value)}, right, RATE_TOLERANCE_MILLI if resource == "cpu" else 0)
    return _one_time({item.timestamp for item in answer.items})


def milli(quantity: str) -> int:
    """Return a quantity of the API (`1500m`, `12k`) in thousandths; raises WrongAnswerError for anything else."""
    digits = quantity.rstrip("mkMGKi")
    factor = _SUFFIXES.get(quantity[len(digits) :])
    if factor is None or not digits.isdecimal():
        raise WrongAnswerError(f"{quantity!r} is not a quantity that is expected here")
    return int(digits) * factor


def _decoded(decode: Callable[[bytes], Any], status: int, body: bytes) -> Any:  # noqa: ANN401 - the decoder's type
    if status != 200:
        raise WrongAnswerError(f"status {status}: {body[:400].decode(errors='replace')}")
    try:
        return decode(body)
    except msgspec.DecodeError as e:
        raise WrongAnswerError(f"not the answer's form: {e}") from e


def _compare(values: Mapping[str, int], expected: Mapping[str, int], tolerance: int) -> None:
    for name, value in values.items():
        if abs(value - expected[name]) > tolerance:
            raise WrongAnswerError(f"{name}: {value} thousandths, where {expected[name]} are right")


def _one_time(stamps: set[str]) -> float:
    if len(stamps) != 1:
        raise WrongAnswerError(f"values of {len(stamps)} different times in one answer")
    return datetime.fromisoformat(stamps.pop()).timestamp()
