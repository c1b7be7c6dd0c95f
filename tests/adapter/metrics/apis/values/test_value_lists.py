from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.quantities import parse_quantity, quantity_of
from adapter.foundation.objects.selectors import EVERYTHING, SelectorError, parse_selector
from adapter.metrics.apis.values.value_lists import external_metric_value_list, metric_value_list, timestamp
from tests.adapter.metrics.apis.fakes import DEPLOYMENTS, NAMESPACES, PODS, answer, rows


def test_v1beta2_pods_are_written_byte_for_byte() -> None:
    body = metric_value_list("v1beta2", PODS, "shop", "http_rps", EVERYTHING, answer(("web-0", 12.5), ("web-1", 3.0)))
    assert body == (
        b'{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2","metadata":{},"items":['
        b'{"describedObject":{"kind":"Pod","namespace":"shop","name":"web-0","apiVersion":"v1"},'
        b'"metric":{"name":"http_rps","selector":null},"timestamp":"2026-08-24T10:00:00Z","value":"12500m"},'
        b'{"describedObject":{"kind":"Pod","namespace":"shop","name":"web-1","apiVersion":"v1"},'
        b'"metric":{"name":"http_rps","selector":null},"timestamp":"2026-08-24T10:00:00Z","value":"3"}]}\n'
    )


def test_v1beta1_pods_are_written_byte_for_byte() -> None:
    body = metric_value_list("v1beta1", PODS, "shop", "http_rps", EVERYTHING, answer(("web-0", 12.5)))
    assert body == (
        b'{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta1","metadata":{},"items":['
        b'{"describedObject":{"kind":"Pod","namespace":"shop","name":"web-0","apiVersion":"v1"},'
        b'"metricName":"http_rps","timestamp":"2026-08-24T10:00:00Z","selector":null,"value":"12500m"}]}\n'
    )


def test_objects_of_a_group_state_group_and_version() -> None:
    body = metric_value_list("v1beta2", DEPLOYMENTS, "shop", "rps", EVERYTHING, answer(("web", 1)))
    assert json.loads(body)["items"][0]["describedObject"] == {
        "kind": "Deployment",
        "namespace": "shop",
        "name": "web",
        "apiVersion": "apps/v1",
    }


def test_cluster_scoped_objects_have_no_namespace() -> None:
    body = metric_value_list("v1beta2", NAMESPACES, None, "rps", EVERYTHING, answer(("shop", 1)))
    assert json.loads(body)["items"][0]["describedObject"] == {"kind": "Namespace", "name": "shop", "apiVersion": "v1"}


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_an_empty_answer_is_an_empty_list(version: str) -> None:
    body = metric_value_list(version, PODS, "shop", "rps", EVERYTHING, answer())
    assert json.loads(body)["items"] == []


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("queue=a", {"matchLabels": {"queue": "a"}}),
        (
            "queue=a,verb in (GET,POST)",
            {
                "matchLabels": {"queue": "a"},
                "matchExpressions": [{"key": "verb", "operator": "In", "values": ["GET", "POST"]}],
            },
        ),
        ("!queue", {"matchExpressions": [{"key": "queue", "operator": "DoesNotExist"}]}),
        ("queue!=a", {"matchExpressions": [{"key": "queue", "operator": "NotIn", "values": ["a"]}]}),
        (
            "queue!=a,verb=GET",
            {
                "matchLabels": {"verb": "GET"},
                "matchExpressions": [{"key": "queue", "operator": "NotIn", "values": ["a"]}],
            },
        ),
    ],
)
def test_the_metric_selector_is_echoed_as_a_label_selector(selector: str, said: dict[str, object]) -> None:
    parsed = parse_selector(selector)
    newer = json.loads(metric_value_list("v1beta2", PODS, "shop", "rps", parsed, answer(("web-0", 1))))
    older = json.loads(metric_value_list("v1beta1", PODS, "shop", "rps", parsed, answer(("web-0", 1))))
    assert newer["items"][0]["metric"]["selector"] == said
    assert older["items"][0]["selector"] == said


def test_a_selector_that_cannot_be_echoed_is_an_error() -> None:
    with pytest.raises(SelectorError):
        metric_value_list("v1beta2", PODS, "shop", "rps", parse_selector("a>1"), answer(("web-0", 1)))


def test_external_values_are_written_byte_for_byte_ordered_by_labels() -> None:
    body = external_metric_value_list(
        "v1beta1", "queue_depth", rows(({"queue": "b", "app": "x"}, 1.5), ({"queue": "a"}, 42.0), ({}, 0.0))
    )
    assert body == (
        b'{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{},"items":['
        b'{"metricName":"queue_depth","metricLabels":{},"timestamp":"2026-08-24T10:00:00Z","value":"0"},'
        b'{"metricName":"queue_depth","metricLabels":{"app":"x","queue":"b"},"timestamp":"2026-08-24T10:00:00Z",'
        b'"value":"1500m"},'
        b'{"metricName":"queue_depth","metricLabels":{"queue":"a"},"timestamp":"2026-08-24T10:00:00Z","value":"42"}]}\n'
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinities_are_never_written(value: float) -> None:
    with pytest.raises(ValueError):
        metric_value_list("v1beta2", PODS, "shop", "rps", EVERYTHING, answer(("web-0", value)))
    with pytest.raises(ValueError):
        external_metric_value_list("v1beta1", "queue", rows(({}, value)))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, b"1970-01-01T00:00:00Z"),
        (1_787_565_600.999, b"2026-08-24T10:00:00Z"),
        (951_782_400, b"2000-02-29T00:00:00Z"),
    ],
)
def test_times_are_whole_seconds_in_utc(seconds: float, text: bytes) -> None:
    assert timestamp(seconds) == text


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]))
    ),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_any_text_and_number_makes_valid_json(text: str, labels: dict[str, str], value: float) -> None:
    custom = json.loads(metric_value_list("v1beta2", PODS, text, text, EVERYTHING, answer((text, value))))["items"][0]
    assert (
        custom["describedObject"]["name"] == custom["describedObject"]["namespace"] == custom["metric"]["name"] == text
    )
    external = json.loads(external_metric_value_list("v1beta1", text, rows((labels, value))))["items"][0]
    assert external["metricLabels"] == labels
    assert str(parse_quantity(external["value"])) == custom["value"] == quantity_of(value)
