from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from benchmarks.fleet_of_pods import CONTAINER, QUEUE, RATE, Fleet
from benchmarks.judging import WrongAnswerError, judge_pods, judge_queue, judge_usage, milli

if TYPE_CHECKING:
    from collections.abc import Callable

FLEET = Fleet(apps=20, pods_per_app=3, metrics=2, namespaces=4)
APP = 6
"""The app is in team-02; its HPA asks for metric 1, a gauge."""


def pods_answer() -> dict[str, Any]:
    return {
        "kind": "MetricValueList",
        "items": [
            {
                "describedObject": {"kind": "Pod", "namespace": "team-02", "name": FLEET.pod(APP, number)},
                "metric": {"name": "app_load_1"},
                "timestamp": "2026-11-21T06:00:00Z",
                "value": f"{FLEET.milli(APP, number, 1)}m",
            }
            for number in range(3)
        ],
    }


def queue_answer() -> dict[str, Any]:
    item = {"metricName": QUEUE, "metricLabels": {}, "timestamp": "2026-11-21T06:00:00Z", "value": "19"}
    return {"kind": "ExternalMetricValueList", "items": [item]}


def usage_answer() -> dict[str, Any]:
    return {
        "kind": "PodMetricsList",
        "items": [
            {
                "metadata": {"name": FLEET.pod(APP, number), "namespace": "team-02"},
                "timestamp": "2026-11-21T06:00:00Z",
                "containers": [
                    {
                        "name": CONTAINER,
                        "usage": {resource: f"{value}m" for resource, value in FLEET.usage_milli(APP, number).items()},
                    }
                ],
            }
            for number in range(3)
        ],
    }


def test_a_right_answer_is_good_and_has_its_time() -> None:
    assert judge_pods(FLEET, APP, 200, msgspec.json.encode(pods_answer())) == 1795240800.0
    assert judge_queue(FLEET, APP, 200, msgspec.json.encode(queue_answer())) == 1795240800.0
    assert judge_usage(FLEET, APP, 200, msgspec.json.encode(usage_answer())) == 1795240800.0


def replaced(number: int, key: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda answer: answer["items"][number].update({key: value})


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(replaced(1, "value", "2376m"), id="value off by one thousandth"),
        pytest.param(replaced(1, "value", "0"), id="zero"),
        pytest.param(replaced(0, "metric", {"name": RATE}), id="another metric"),
        pytest.param(replaced(0, "timestamp", "2026-11-21T06:00:01Z"), id="two times"),
        pytest.param(
            replaced(2, "describedObject", {"kind": "Pod", "namespace": "team-02", "name": FLEET.pod(7, 2)}),
            id="a pod of another app",
        ),
        pytest.param(
            replaced(2, "describedObject", {"kind": "Pod", "namespace": "team-03", "name": FLEET.pod(APP, 2)}),
            id="another namespace",
        ),
        pytest.param(lambda answer: answer["items"].pop(), id="a pod too few"),
        pytest.param(lambda answer: answer["items"].append(answer["items"][0]), id="a pod twice"),
        pytest.param(lambda answer: answer["items"].clear(), id="no pods"),
        pytest.param(lambda answer: answer.pop("items"), id="another document"),
    ],
)
def test_every_kind_of_wrong_answer_is_seen(spoil: Callable[[dict[str, Any]], object]) -> None:
    answer = pods_answer()
    spoil(answer)
    with pytest.raises(WrongAnswerError):
        judge_pods(FLEET, APP, 200, msgspec.json.encode(answer))


@pytest.mark.parametrize("status", [404, 429, 503])
def test_an_error_is_never_a_good_answer(status: int) -> None:
    with pytest.raises(WrongAnswerError, match=f"status {status}"):
        judge_pods(FLEET, APP, status, msgspec.json.encode(pods_answer()))


def test_a_rate_may_lack_what_is_cut_off_and_no_more() -> None:
    answer = pods_answer()
    for number, item in enumerate(answer["items"]):
        item["metric"]["name"] = RATE
        item["value"] = f"{FLEET.milli(0, number, 0) - 1}m"
        item["describedObject"] |= {"namespace": "team-00", "name": FLEET.pod(0, number)}
    assert judge_pods(FLEET, 0, 200, msgspec.json.encode(answer)) > 0
    answer["items"][0]["value"] = f"{FLEET.milli(0, 0, 0) - 3}m"
    with pytest.raises(WrongAnswerError):
        judge_pods(FLEET, 0, 200, msgspec.json.encode(answer))


def test_a_queue_of_another_app_is_seen() -> None:
    with pytest.raises(WrongAnswerError, match="22000"):
        judge_queue(FLEET, 7, 200, msgspec.json.encode(queue_answer()))


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda item: item["containers"].clear(), id="no containers"),
        pytest.param(lambda item: item["containers"][0].update(name="other"), id="another container"),
        pytest.param(lambda item: item["containers"][0]["usage"].pop("cpu"), id="no CPU"),
        pytest.param(lambda item: item["containers"][0]["usage"].update(memory="0"), id="zero"),
        pytest.param(lambda item: item["metadata"].update(namespace="team-03"), id="another namespace"),
        pytest.param(lambda item: item.update(timestamp="2026-11-21T06:00:01Z"), id="two times"),
    ],
)
def test_wrong_usage_is_seen(spoil: Callable[[dict[str, Any]], object]) -> None:
    answer = usage_answer()
    spoil(answer["items"][1])
    with pytest.raises(WrongAnswerError):
        judge_usage(FLEET, APP, 200, msgspec.json.encode(answer))


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("1500m", 1500), ("12", 12_000), ("3k", 3_000_000), ("2Ki", 2_048_000)]
)
def test_quantities_are_read(text: str, value: int) -> None:
    assert milli(text) == value


@pytest.mark.parametrize("text", ["", "m", "-1", "1.5", "1Ti", "1iK", "NaN", "1mm"])
def test_an_invalid_quantity_is_refused(text: str) -> None:
    with pytest.raises(WrongAnswerError):
        milli(text)
