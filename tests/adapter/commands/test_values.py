"""Values and discovery as an HPA controller and kube-apiserver get them, compared with Prometheus itself."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal
from typing import TYPE_CHECKING

import pytest

from tests.support.caller import CUSTOM, EXTERNAL, Answer, Caller, number
from tests.support.harnesses import ask_prometheus
from tests.support.serving import Adapter, eventually

if TYPE_CHECKING:
    from demo.machine.prometheus import PrometheusProcess

MILLI = Decimal("0.001")


def as_served(value: str) -> Decimal:
    """Return a value as the API gives it: in thousandths, and truncated as by prometheus-adapter."""
    return Decimal(value).quantize(MILLI, ROUND_DOWN)


def by_pod(prometheus: PrometheusProcess, matchers: str, answer: Answer) -> dict[str, Decimal]:
    found = ask_prometheus(prometheus, f"sum by (pod) (open_connections{{{matchers}}})", answer.evaluated_at)
    assert found
    return {labels["pod"]: as_served(value) for labels, value in found}


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_pods_by_selector_have_the_values_of_prometheus_at_the_time_of_the_answer(
    caller: Caller, prometheus: PrometheusProcess, version: str
) -> None:
    answer = caller.pods("open_connections", version=version, labelSelector="app in (web)")
    expected = by_pod(prometheus, 'namespace="shop",pod=~"web-[012]"', answer)
    assert sorted(expected) == ["web-0", "web-1", "web-2"]
    assert answer.values == expected


@pytest.mark.parametrize(
    ("selector", "matcher"),
    [
        ("service=front", 'service="front"'),
        ("service!=front", 'service!="front"'),
        ("service in (front,back),instance", 'service=~"front|back",instance!=""'),
        ("service notin (back),!instance", 'service!~"back",instance=""'),
    ],
)
def test_the_metric_label_selector_selects_series(
    caller: Caller, prometheus: PrometheusProcess, selector: str, matcher: str
) -> None:
    answer = caller.pods("open_connections", labelSelector="app=web", metricLabelSelector=selector)
    assert answer.values == by_pod(prometheus, f'namespace="shop",pod=~"web-[012]",{matcher}', answer)


def test_both_versions_name_metric_and_selector_in_their_own_way(caller: Caller) -> None:
    asked = {"labelSelector": "app=web", "metricLabelSelector": "service=front"}
    expected_selector = {"matchLabels": {"service": "front"}}
    first, second = (caller.pods("open_connections", version=version, **asked) for version in ("v1beta1", "v1beta2"))
    assert first.document["apiVersion"] == "custom.metrics.k8s.io/v1beta1"
    assert second.document["apiVersion"] == "custom.metrics.k8s.io/v1beta2"
    assert (first.items[0]["metricName"], first.items[0]["selector"]) == ("open_connections", expected_selector)
    assert second.items[0]["metric"] == {"name": "open_connections", "selector": expected_selector}
    assert first.items[0]["describedObject"] == {
        "kind": "Pod", "namespace": "shop", "name": "web-0", "apiVersion": "v1",
    }  # fmt: skip


def test_values_follow_prometheus(caller: Caller, prometheus: PrometheusProcess) -> None:
    answers = [caller.pods("open_connections", labelSelector="app=db")]

    def moved() -> bool:
        answers.append(caller.pods("open_connections", labelSelector="app=db"))
        return answers[-1].values != answers[0].values

    eventually(moved)
    assert answers[-1].evaluated_at > answers[0].evaluated_at
    assert answers[-1].values == by_pod(prometheus, 'namespace="shop",pod="db-0"', answers[-1])


def test_the_same_name_in_another_namespace_is_another_pod(caller: Caller, prometheus: PrometheusProcess) -> None:
    answer = caller.pods("open_connections", namespace="other")
    assert answer.values == by_pod(prometheus, 'namespace="other",pod="web-0"', answer)


@pytest.mark.parametrize("resource", ["pods", "pod"])
def test_one_object_is_found_by_its_name(caller: Caller, prometheus: PrometheusProcess, resource: str) -> None:
    answer = caller.get(f"{CUSTOM}/v1beta1/namespaces/shop/{resource}/web-1/open_connections")
    assert answer.values == by_pod(prometheus, 'namespace="shop",pod="web-1"', answer)


def test_a_metric_of_the_namespace_itself_is_served(caller: Caller, prometheus: PrometheusProcess) -> None:
    answer = caller.get(f"{CUSTOM}/v1beta2/namespaces/shop/metrics/open_connections")
    ((_, value),) = ask_prometheus(prometheus, 'sum(open_connections{namespace="shop"})', answer.evaluated_at)
    assert answer.values == {"shop": as_served(value)}


def external(answer: Answer) -> dict[tuple[tuple[str, str], ...], Decimal]:
    return {tuple(sorted(item["metricLabels"].items())): number(item["value"]) for item in answer.items}


def test_an_external_metric_by_selector_returns_every_row_with_its_labels(
    caller: Caller, prometheus: PrometheusProcess
) -> None:
    answer = caller.external("queue_depth", labelSelector="queue=orders")
    found = ask_prometheus(prometheus, 'queue_depth{namespace="shop",queue="orders"}', answer.evaluated_at)
    assert len(found) == 2
    assert external(answer) == {tuple(sorted(labels.items())): as_served(value) for labels, value in found}


@pytest.mark.parametrize(("selector", "matcher"), [("", ""), ("queue in (orders)", ',queue="orders"')])
def test_an_external_sum_covers_only_the_selected_rows(
    caller: Caller, prometheus: PrometheusProcess, selector: str, matcher: str
) -> None:
    answer = caller.external("queue_total", **({"labelSelector": selector} if selector else {}))
    ((_, value),) = ask_prometheus(prometheus, f'sum(queue_depth{{namespace="shop"{matcher}}})', answer.evaluated_at)
    assert external(answer) == {(): as_served(value)}


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_discovery_lists_each_metric_for_each_kind_even_without_series(caller: Caller, version: str) -> None:
    document = caller.get(f"{CUSTOM}/{version}").document
    assert document["groupVersion"] == f"custom.metrics.k8s.io/{version}"
    metrics = ["never_seen", "odd", "open_connections", "refused", "twice"]
    assert {item["name"]: item["namespaced"] for item in document["resources"]} == {
        **{f"namespaces/{name}": False for name in metrics},
        **{f"pods/{name}": True for name in metrics},
    }
    assert all(item["verbs"] == ["get"] for item in document["resources"])


def test_discovery_lists_external_metrics(caller: Caller) -> None:
    names = {item["name"] for item in caller.get(EXTERNAL).document["resources"]}
    assert names == {"queue_depth", "queue_total", "queue_never", "odd_rows"}


def test_discovery_lists_groups_and_their_versions(caller: Caller) -> None:
    groups = {group["name"]: group for group in caller.get("/apis").document["groups"]}
    versions = {name: [version["version"] for version in group["versions"]] for name, group in groups.items()}
    assert versions == {
        "custom.metrics.k8s.io": ["v1beta2", "v1beta1"],
        "external.metrics.k8s.io": ["v1beta1"],
        "metrics.k8s.io": ["v1beta1"],
    }
    assert caller.get(CUSTOM).document["preferredVersion"]["version"] == "v1beta2"


def test_aggregated_discovery_is_short_and_is_not_sent_twice(caller: Caller) -> None:
    accept = ("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
    answer = caller.get("/apis", [accept])
    assert answer.header("Content-Type") == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert [item["metadata"]["name"] for item in answer.document["items"]] == [
        "custom.metrics.k8s.io",
        "external.metrics.k8s.io",
        "metrics.k8s.io",
    ]
    again = caller.get("/apis", [accept, ("If-None-Match", str(answer.header("ETag")))])
    assert (again.status, again.body) == (304, b"")
    assert caller.get("/apis", [accept]) == answer


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3", "/openapi/v3/apis/metrics.k8s.io/v1beta1"])
def test_schemas_are_not_sent_again_to_a_client_that_has_them(caller: Caller, path: str) -> None:
    answer = caller.get(path)
    tag = answer.header("ETag")
    assert (answer.status, answer.header("Content-Type")) == (200, "application/json")
    assert tag is not None
    assert caller.get(path, headers=(("If-None-Match", tag),)).status == 304


def test_own_metrics_count_requests_and_queries(adapter: Adapter, caller: Caller) -> None:
    caller.pods("open_connections", labelSelector="app=web")
    group = "custom.metrics.k8s.io"
    assert adapter.metric("tidewatch_adapter_requests_total", group=group, verb="GET", code="200") >= 1
    assert adapter.metric("tidewatch_adapter_prometheus_queries_total", kind="instant", result="ok") >= 1
    assert adapter.metric("metrics_apiserver_metric_freshness_seconds_count", group=group) >= 1
    assert adapter.metric("prometheus_adapter_prometheus_client_request_duration_seconds_count", path="/api/v1/query")
