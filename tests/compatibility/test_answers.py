"""Realistic configurations against a real Prometheus: which metrics are listed, and what is answered.

Each answer is compared with a result worked out by hand, and with the result in Prometheus itself of the query
that prometheus-adapter sends.
"""

from __future__ import annotations

import time
from contextlib import suppress
from decimal import ROUND_DOWN, Decimal
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.compatibility.cases import external, walkthrough
from tests.compatibility.cluster import OBJECTS
from tests.compatibility.form import Custom, External, Usage
from tests.compatibility.harnesses import ALL, AS_BEFORE, CROWDED, HARNESSES, MODES, OURS
from tests.support.caller import CUSTOM, EXTERNAL, Answer, number
from tests.support.harnesses import ask_prometheus
from tests.support.serving import eventually
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.compatibility.conftest import Served

T = TypeVar("T")

_PASSING = (500, 503, 504)
"""Statuses that a first request may get on a busy machine if Prometheus takes longer than a request may wait."""
_LISTED_SECONDS = 5.0
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
NAMES = {item["metadata"]["name"] for item in OBJECTS["objects.json"]["items"]} | {"shop-web"}
"""Objects that may be requested; prometheus-adapter ignores samples of all others."""


def _by_mode(kind: type[Custom | External | Usage]) -> list[object]:
    return [
        pytest.param(harness, mode, ask, id=f"{mode}-{case.name}-{ask.target}")
        for harness, cases in HARNESSES.items()
        for mode in MODES
        for case in cases
        for ask in case.asks
        if isinstance(ask, kind)
    ]


def _with_query(kind: type[Custom | External | Usage]) -> list[object]:
    return [
        pytest.param(harness, ask, id=f"{case.name}-{ask.target}")
        for harness, cases in HARNESSES.items()
        for case in cases
        for ask in case.asks
        if isinstance(ask, kind) and (ask.cpu if isinstance(ask, Usage) else ask.query)
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("harness", HARNESSES)
@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_the_list_of_custom_metrics_is_complete(
    served: Callable[[str, str], Served], harness: str, mode: str, version: str
) -> None:
    expected = {name: namespaced for case in HARNESSES[harness] for name, namespaced in case.custom.items()}
    if mode == AS_BEFORE:
        expected = {name: namespaced for name, namespaced in expected.items() if name not in _unseen(harness)}
    assert _final_list(served(harness, mode), f"{CUSTOM}/{version}", expected) == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("harness", HARNESSES)
def test_the_list_of_external_metrics_is_complete(
    served: Callable[[str, str], Served], harness: str, mode: str
) -> None:
    names = {name for case in HARNESSES[harness] for name in case.external}
    expected = dict.fromkeys(names - _unseen(harness) if mode == AS_BEFORE else names, True)
    assert _final_list(served(harness, mode), EXTERNAL, expected) == expected


@pytest.mark.parametrize(("harness", "mode", "ask"), _by_mode(Custom))
def test_custom_metrics_have_the_expected_values_in_both_versions(
    served: Callable[[str, str], Served], harness: str, mode: str, ask: Custom
) -> None:
    before = mode == AS_BEFORE
    status = ask.status_before or ask.status if before else ask.status
    values = ask.values_before or ask.values if before else ask.values
    _request_for_others(served(harness, mode), ask, mode)
    for version in ("v1beta1", "v1beta2"):
        answer = _answer(served(harness, mode), ask.url(version), status)
        if status == 200:
            described = [item["describedObject"] for item in answer.items]
            assert [of["name"] for of in described] == sorted(values)
            assert {of["name"]: item["value"] for of, item in zip(described, answer.items, strict=True)} == values
            core = {of["apiVersion"] for of in described if of["kind"] in {"Namespace", "Node", "Pod", "Service"}}
            assert core <= {"/v1" if before else "v1"}
        else:
            assert answer.message.startswith(ask.message)


@pytest.mark.parametrize(("harness", "mode", "ask"), _by_mode(External))
def test_external_metrics_have_the_expected_rows(
    served: Callable[[str, str], Served], harness: str, mode: str, ask: External
) -> None:
    _request_for_others(served(harness, mode), ask, mode)
    answer = _answer(served(harness, mode), ask.url, ask.status)
    if ask.status == 200:
        rows = [(item["metricLabels"], item["value"]) for item in answer.items]
        assert _sorted_rows(rows) == _sorted_rows(ask.rows)
    else:
        assert answer.message.startswith(ask.message)


@pytest.mark.parametrize(("harness", "mode", "ask"), _by_mode(Usage))
def test_pods_and_nodes_have_the_expected_usage(
    served: Callable[[str, str], Served], harness: str, mode: str, ask: Usage
) -> None:
    answer = _answer(served(harness, mode), ask.url, 200)
    containers = {item["metadata"]["name"]: item.get("containers", [{"name": "", **item}]) for item in answer.items}
    assert {name: {one["name"]: one["usage"] for one in own} for name, own in containers.items()} == ask.used
    assert {item["window"] for item in answer.items} <= {"3m0s"}


@pytest.mark.parametrize(("harness", "ask"), _with_query(Custom))
def test_the_query_that_prometheus_adapter_sends_gives_the_expected_values(
    served: Callable[[str, str], Served], harness: str, ask: Custom
) -> None:
    rows = [
        (labels[ask.label], value)
        for labels, value in _rows_of_query(served(harness, OURS), ask.query)
        if labels.get(ask.label) in NAMES
    ]
    assert {name: _thousandths(value) for name, value in rows} == _numbers(ask.values)
    if ask.values_before:
        assert {name: Decimal(int(float(value) * 1000)) for name, value in rows} == _numbers(ask.values_before)


@pytest.mark.parametrize(("harness", "ask"), _with_query(External))
def test_the_query_that_prometheus_adapter_sends_gives_the_expected_rows(
    served: Callable[[str, str], Served], harness: str, ask: External
) -> None:
    rows = [(labels, _thousandths(value)) for labels, value in _rows_of_query(served(harness, OURS), ask.query)]
    assert _sorted_rows(rows) == _sorted_rows((labels, number(quantity) * 1000) for labels, quantity in ask.rows)


@pytest.mark.parametrize(("harness", "ask"), _with_query(Usage))
def test_the_queries_that_prometheus_adapter_sends_give_the_expected_usage(
    served: Callable[[str, str], Served], harness: str, ask: Usage
) -> None:
    found: dict[str, dict[str, dict[str, Decimal]]] = {}
    for resource, query in (("cpu", ask.cpu), ("memory", ask.memory)):
        for labels, value in _rows_of_query(served(harness, OURS), query):
            name, container = (labels[ask.labels[0]], labels[ask.labels[1]] if len(ask.labels) > 1 else "")
            found.setdefault(name, {}).setdefault(container, {})[resource] = _thousandths(value)
    assert found == {
        name: {container: _numbers(used) for container, used in containers.items()}
        for name, containers in (*ask.used.items(), *ask.left_out.items())
    }


def test_a_metric_requested_in_many_namespaces_is_queried_once(served: Callable[[str, str], Served]) -> None:
    crowded, alone = served(ALL, CROWDED), served(ALL, OURS)
    for ask in (walkthrough.WALKTHROUGH.asks[0], external.NAMESPACED.asks[0]):
        assert isinstance(ask, Custom | External)
        _request_for_others(crowded, ask, CROWDED)
        _answer(alone, ask.url("v1beta2") if isinstance(ask, Custom) else ask.url, 200)
    assert crowded.adapter.metric("tidewatch_adapter_rule_plan", plan="wide") >= 2
    assert alone.adapter.metric("tidewatch_adapter_rule_plan", plan="namespace") >= 2


def _request_for_others(serving: Served, ask: Custom | External, mode: str) -> None:
    for url in ask.crowd if mode == CROWDED else ():
        serving.caller.get(url)


def _unseen(harness: str) -> set[str]:
    return {name for case in HARNESSES[harness] for name in case.unseen}


def _final_list(serving: Served, path: str, expected: Mapping[str, bool]) -> Mapping[str, bool]:
    """Return the final list: lists are rebuilt a moment after the last series were looked up."""

    def listed() -> dict[str, bool]:
        resources = serving.caller.get(path).document["resources"]
        assert len({item["name"] for item in resources}) == len(resources), "a name is listed twice"
        return {item["name"]: item["namespaced"] for item in resources}

    with suppress(AssertionError):
        until(lambda: listed() == expected, _LISTED_SECONDS)
    return listed()


def _answer(serving: Served, url: str, status: int) -> Answer:
    """Return the answer, which has this status; answers that fail only because of the load are requested again."""

    def final_answer() -> Answer | None:
        found = serving.caller.get(url)
        return None if found.status in _PASSING and found.status != status else found

    answer = eventually(final_answer)
    assert answer is not None
    assert answer.status == status, answer.text
    return answer


def _rows_of_query(serving: Served, query: str) -> list[tuple[dict[str, str], str]]:
    """Return the rows of the query's result; a scalar is one row without labels, as prometheus-adapter reads it."""
    vector = f"vector({query})" if query.startswith("scalar(") else query
    return ask_prometheus(serving.prometheus, vector, time.time())


def _thousandths(value: str) -> Decimal:
    return (Decimal(value) * 1000).to_integral_value(ROUND_DOWN)


def _numbers(quantities: Mapping[str, str]) -> dict[str, Decimal]:
    return {name: _number(quantity) * 1000 for name, quantity in quantities.items()}


def _number(quantity: str) -> Decimal:
    for suffix, factor in _BINARY.items():
        if quantity.endswith(suffix):
            return Decimal(quantity.removesuffix(suffix)) * factor
    return number(quantity)


def _sorted_rows(rows: Iterable[tuple[Mapping[str, str], T]]) -> list[tuple[list[tuple[str, str]], T]]:
    return sorted(((sorted(labels.items()), value) for labels, value in rows), key=lambda row: row[0])
