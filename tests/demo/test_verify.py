"""The demo's independent check must find every kind of error; each is injected once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from demo.records import Served, Sync, Target
from demo.verify import check

TARGET = Target(
    namespace="demo",
    follows_forecast=False,
    connections_per_pod=60,
    min_replicas=2,
    max_replicas=30,
    scale_up_period_seconds=15.0,
    scale_down_window_seconds=8.0,
)
NOW = 1_000_000.0
PREDICTED = "300.1234"


class WitnessOf:
    """A Prometheus with constant series."""

    def __init__(self, values: dict[str, int]) -> None:
        self._values = values

    def custom_query(self, query: str, params: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        assert params is not None
        if query.startswith("max(tidewatch_predicted_load{"):
            return [{"metric": {}, "value": [params["time"], PREDICTED]}]
        assert query == 'websocket_connections{job="gateway",namespace="demo"}'
        return [{"metric": {"pod": pod}, "value": [params["time"], str(value)]} for pod, value in self._values.items()]


def sync_of(values: dict[str, int], *, desired: int, replicas: int = 2, seconds: float = 0.0) -> Sync:
    pods = tuple(values)
    return Sync(
        seconds=seconds,
        replicas=replicas,
        status_replicas=replicas,
        pods=pods,
        pending=(),
        connections=Served(NOW + 0.5, NOW, {pod: 1000 * value for pod, value in values.items()}),
        total=Served(NOW + 0.5, NOW, {"": 1000 * sum(values.values())}),
        predicted=None,
        errors=(),
        desired=desired,
        reason="",
    )


TRUTH = {"a": 100, "b": 110}
RIGHT = sync_of(TRUTH, desired=4)


def test_right_answers_and_decisions_pass() -> None:
    findings = check([RIGHT], TARGET, WitnessOf(TRUTH))
    assert (findings.answers_checked, findings.decisions_checked) == (2, 1)
    assert not findings.answers_wrong
    assert not findings.decisions_wrong


@pytest.mark.parametrize(
    ("sync", "expected"),
    [
        (replace(RIGHT, connections=Served(NOW, NOW, {"a": 100_001, "b": 110_000})), "a = 100001m"),
        (replace(RIGHT, connections=Served(NOW, NOW, {"a": 100_000})), "b is missing"),
        (replace(RIGHT, connections=Served(NOW, NOW, {"a": 100_000, "b": 110_000, "c": 0})), "c = 0m"),
        (replace(RIGHT, total=Served(NOW, NOW, {"": 209_000})), "total 209"),
        (replace(RIGHT, total=Served(NOW + 60, NOW, {"": 210_000})), "60.0 s old"),
    ],
)
def test_a_wrong_answer_is_found(sync: Sync, expected: str) -> None:
    wrong = check([sync], TARGET, WitnessOf(TRUTH)).answers_wrong
    assert len(wrong) == 1
    assert expected in wrong[0]


@pytest.mark.parametrize(("seconds", "wrong"), [(4.0, 0), (7.0, 1)])
def test_a_pod_that_has_just_started_may_be_missing(seconds: float, wrong: int) -> None:
    first = sync_of({"a": 100}, desired=2, seconds=0.0)
    second = replace(RIGHT, seconds=1.0)
    third = replace(RIGHT, seconds=seconds, connections=Served(NOW, NOW, {"a": 100_000}))
    found = check([first, second, third], TARGET, WitnessOf(TRUTH)).answers_wrong
    assert len([each for each in found if "b is missing" in each]) == wrong


@pytest.mark.parametrize("desired", [2, 3, 5])
def test_a_wrong_decision_is_found(desired: int) -> None:
    assert check([replace(RIGHT, desired=desired)], TARGET, WitnessOf(TRUTH)).decisions_wrong


def test_a_fall_within_the_window_changes_nothing_and_after_it_shrinks() -> None:
    low = {"a": 5, "b": 5, "c": 5, "d": 5}
    syncs = [
        sync_of(low, desired=4, replicas=4, seconds=0.0),
        sync_of(low, desired=4, replicas=4, seconds=6.0),
        sync_of(low, desired=2, replicas=4, seconds=9.0),
    ]
    assert not check(syncs, TARGET, WitnessOf(low)).decisions_wrong


def test_a_failed_metric_forbids_to_shrink() -> None:
    low = {"a": 5, "b": 5, "c": 5, "d": 5}
    half = replace(sync_of(low, desired=4, replicas=4, seconds=100.0), total=None, errors=("503",))
    first = sync_of(low, desired=4, replicas=4, seconds=0.0)
    assert not check([first, half], TARGET, WitnessOf(low)).decisions_wrong


FOLLOWING = replace(TARGET, follows_forecast=True)


@pytest.mark.parametrize(("milli", "objections"), [(300_123, 0), (300_124, 0), (300_126, 1), (210_000, 1)])
def test_a_predicted_load_must_be_one_that_was_published(milli: int, objections: int) -> None:
    sync = replace(RIGHT, predicted=Served(NOW, NOW, {"": milli}), desired=6 if milli > 300_000 else 4)
    findings = check([sync], FOLLOWING, WitnessOf(TRUTH))
    assert (findings.answers_checked, len(findings.answers_wrong)) == (3, objections)


def test_the_largest_of_present_and_predicted_load_decides() -> None:
    sync = replace(RIGHT, predicted=Served(NOW, NOW, {"": 300_123}), desired=6)
    assert not check([sync], FOLLOWING, WitnessOf(TRUTH)).decisions_wrong
    assert check([replace(sync, desired=4)], FOLLOWING, WitnessOf(TRUTH)).decisions_wrong


def test_a_lost_forecast_forbids_to_shrink_and_allows_to_grow() -> None:
    low = {"a": 5, "b": 5, "c": 5, "d": 5}
    first = replace(sync_of(low, desired=4, replicas=4), predicted=Served(NOW, NOW, {"": 300_123}), desired=6)
    lost = sync_of(low, desired=4, replicas=4, seconds=100.0)
    assert not check([first, lost], FOLLOWING, WitnessOf(low)).decisions_wrong
    grown = sync_of(TRUTH, desired=4, seconds=0.0)
    assert not check([grown], FOLLOWING, WitnessOf(TRUTH)).decisions_wrong
