"""Answers that `--compatibility=prometheus-adapter` restores, and those that it never gives."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.quantities import quantity_cut_in_binary, quantity_of
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.apis.compatibility import OURS, PROMETHEUS_ADAPTER, Compatibility
from adapter.metrics.readings import errors
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.readings.catalogue.last_look_up import LookUp
from tests.adapter.metrics.apis.fakes import (
    DEPLOYMENTS,
    AskedExternal,
    FakeReadings,
    Server,
    all_pods,
    answer,
    custom_metric,
    external_metric,
    rows,
)
from tests.adapter.metrics.apis.handler_harness import LOST

RPS = custom_metric("rps")
DEPLOYMENT_RPS = custom_metric("rps", DEPLOYMENTS)
QUEUE = external_metric("queue")

CUSTOM = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces"
ALL_ROWS = AskedExternal(QUEUE, "shop", EVERYTHING)


def server(compatibility: Compatibility) -> Server:
    return Server(FakeReadings(Catalogue([RPS, DEPLOYMENT_RPS, QUEUE], generation=1)), compatibility=compatibility)


@pytest.mark.parametrize(
    ("compatibility", "api_version", "moment", "value"),
    [(OURS, "v1", "2026-08-24T10:00:00Z", "1001m"), (PROMETHEUS_ADAPTER, "/v1", "2026-08-24T10:00:04Z", "1")],
)
def test_compatibility_changes_api_version_time_and_value_of_pods(
    compatibility: Compatibility, api_version: str, moment: str, value: str
) -> None:
    serving = server(compatibility)
    serving.readings.answers[all_pods(RPS)] = answer(("web-0", 1.001))
    (item,) = json.loads(serving.get(f"{CUSTOM}/pods/*/rps").body)["items"]
    assert item["describedObject"]["apiVersion"] == api_version
    assert (item["timestamp"], item["value"]) == (moment, value)


@pytest.mark.parametrize("compatibility", [OURS, PROMETHEUS_ADAPTER])
def test_objects_of_a_group_state_group_and_version(compatibility: Compatibility) -> None:
    serving = server(compatibility)
    serving.readings.answers[all_pods(DEPLOYMENT_RPS)] = answer(("web", 2))
    (item,) = json.loads(serving.get(f"{CUSTOM}/deployments.apps/*/rps").body)["items"]
    assert item["describedObject"]["apiVersion"] == "apps/v1"


@pytest.mark.parametrize(("compatibility", "value"), [(OURS, "1001m"), (PROMETHEUS_ADAPTER, "1")])
def test_external_values_have_the_time_of_the_query_in_both_modes(compatibility: Compatibility, value: str) -> None:
    serving = server(compatibility)
    serving.readings.answers[ALL_ROWS] = rows(({"queue": "orders"}, 1.001))
    (item,) = json.loads(serving.get(f"{EXTERNAL}/shop/queue").body)["items"]
    assert (item["timestamp"], item["value"]) == ("2026-08-24T10:00:00Z", value)


def test_the_metric_of_answer_age_ignores_the_compatible_timestamp() -> None:
    serving = server(PROMETHEUS_ADAPTER)
    serving.readings.answers[all_pods(RPS)] = answer(("web-0", 1))
    serving.get(f"{CUSTOM}/pods/*/rps")
    assert serving.sample("metrics_apiserver_metric_freshness_seconds_sum", group="custom.metrics.k8s.io") == 4.0


NOT_FETCHED = (500, "Internal error occurred: unable to fetch metrics")
FAILURES = [
    (errors.SourceUnreachableError, 503, NOT_FETCHED),
    (errors.SourceSlowError, 504, NOT_FETCHED),
    (errors.FirstAnswerPendingError, 504, NOT_FETCHED),
    (errors.AnswerTooOldError, 503, NOT_FETCHED),
    (errors.QueryRefusedByPrometheusError, 500, NOT_FETCHED),
    (errors.ObjectsNotKnownError, 503, (500, "Internal error occurred: unable to list matching resources")),
    (errors.NoObjectsMatchError, 404, (404, "the server could not find the metric rps for pods")),
    (errors.NoSampleError, 404, (404, "the server could not find the metric rps for pods")),
]


@pytest.mark.parametrize(("error", "code", "former"), FAILURES)
def test_compatibility_changes_status_and_message_of_failures(
    error: type[errors.ReadingError], code: int, former: tuple[int, str]
) -> None:
    def status_and_message(compatibility: Compatibility) -> tuple[int, str]:
        serving = server(compatibility)
        serving.readings.answers[all_pods(RPS)] = error("the reason")
        response = serving.get(f"{CUSTOM}/pods/*/rps")
        status = json.loads(response.body)
        assert status["code"] == response.status
        return response.status, status["message"]

    ours, words = status_and_message(OURS)
    assert (ours, "the reason" in words) == (code, True)
    assert status_and_message(PROMETHEUS_ADAPTER) == former


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.AmbiguousSamplesError, 500),
        (errors.PartialAnswerError, 500),
        (errors.UnanswerableSelectorError, 400),
        (errors.TooMuchDemandError, 429),
    ],
)
def test_errors_that_prometheus_adapter_lacks_stay_ours(error: type[errors.ReadingError], code: int) -> None:
    serving = server(PROMETHEUS_ADAPTER)
    serving.readings.answers[all_pods(RPS)] = error("the reason")
    response = serving.get(f"{CUSTOM}/pods/*/rps")
    assert (response.status, b"the reason" in response.body) == (code, True)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (f"{CUSTOM}/pods/*/rsp", "metric rsp for pods"),
        (f"{CUSTOM}/pods/web-0/rsp", "metric rsp for pods"),
        (f"{CUSTOM}/metrics/rsp", "metric rsp for namespaces"),
        (f"{CUSTOM}/nobodies.example.com/web/rps", "metric rps for nobodies.example.com"),
        (f"{CUSTOM}/deployments.apps/*/rsp", "metric rsp for deployments.apps"),
        (f"{EXTERNAL}/default/rsp", "metric rsp for namespaces"),
        (f"{EXTERNAL}/shop/rsp", "metric rsp for "),
    ],
)
def test_a_missing_metric_has_the_message_of_prometheus_adapter(target: str, words: str) -> None:
    response = server(PROMETHEUS_ADAPTER).get(target)
    assert (response.status, json.loads(response.body)["message"]) == (404, f"the server could not find the {words}")


@pytest.mark.parametrize(("compatibility", "code"), [(OURS, 503), (PROMETHEUS_ADAPTER, 404)])
def test_a_metric_not_looked_up_yet_is_503_and_404_with_compatibility(compatibility: Compatibility, code: int) -> None:
    serving = Server(
        FakeReadings(look_ups_now=tuple(LookUp(rule, failure="no server answers") for rule in LOST.rules)),
        compatibility=compatibility,
    )
    assert serving.get(f"{CUSTOM}/pods/*/lost").status == code
    assert serving.get(f"{EXTERNAL}/shop/lost_depth").status == code


def test_objects_of_an_unknown_kind_cannot_be_listed() -> None:
    response = server(PROMETHEUS_ADAPTER).get(f"{CUSTOM}/nobodies.example.com/*/rps")
    message = "Internal error occurred: unable to list matching resources"
    assert (response.status, json.loads(response.body)["message"]) == (500, message)


@pytest.mark.parametrize(
    "query", ["labelSelector=a===b", "metricLabelSelector=a+in+b", "labelSelector=a&labelSelector=b"]
)
def test_a_malformed_request_is_400_in_both_modes(query: str) -> None:
    codes = {
        server(compatibility).get(f"{CUSTOM}/pods/*/rps?{query}").status for compatibility in (OURS, PROMETHEUS_ADAPTER)
    }
    assert codes == {400}


@given(st.floats(min_value=-1e15, max_value=9e15))
def test_the_two_roundings_differ_by_at_most_a_thousandth(value: float) -> None:
    assert int(value * 1000) == _milli(quantity_cut_in_binary(value))
    if abs(value) < 9e12:
        assert abs(_milli(quantity_cut_in_binary(value)) - _milli(quantity_of(value))) <= 1


@pytest.mark.parametrize(("value", "quantity"), [(9.3e15, "9300T"), (2e16, "20P"), (-1e19, "-10E"), (1e300, "1e300")])
def test_both_modes_write_very_large_numbers_alike(value: float, quantity: str) -> None:
    assert (quantity_of(value), quantity_cut_in_binary(value)) == (quantity, quantity)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinities_have_no_quantity(value: float) -> None:
    with pytest.raises(ValueError, match="cannot be written as a quantity"):
        quantity_cut_in_binary(value)


def _milli(quantity: str) -> int:
    exponents = {"m": 0, "k": 6, "M": 9, "G": 12, "T": 15, "P": 18}
    suffix = quantity[-1]
    return int(quantity[:-1]) * 10 ** exponents[suffix] if suffix in exponents else int(quantity) * 1000
