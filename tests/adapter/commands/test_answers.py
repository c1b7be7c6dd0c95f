"""Where there is no value, the answer is neither 0 nor NaN, and always says why."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from tests.adapter.commands.harness import SHOP
from tests.support.caller import CUSTOM, EXTERNAL, Answer, Caller

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.serving import Adapter, Trust

WEB = {"labelSelector": "app=web"}


def test_a_selector_that_matches_no_pod_is_404(caller: Caller) -> None:
    answer = caller.pods("open_connections", labelSelector="app=nobody")
    assert answer.status == 404
    assert answer.document["reason"] == "NotFound"
    assert "no pods in namespace 'shop' match the selector 'app=nobody'" in answer.message


@pytest.mark.parametrize(("metric", "selector"), [("open_connections", "app=idle"), ("never_seen", "app=web")])
def test_pods_without_a_sample_are_200_and_an_empty_list(caller: Caller, metric: str, selector: str) -> None:
    answer = caller.pods(metric, labelSelector=selector)
    assert (answer.status, answer.items) == (200, [])


@pytest.mark.parametrize(("metric", "selector"), [("queue_never", ""), ("queue_depth", "queue=unknown")])
def test_external_metrics_without_data_are_200_and_an_empty_list(caller: Caller, metric: str, selector: str) -> None:
    answer = caller.external(metric, labelSelector=selector)
    assert (answer.status, answer.items) == (200, [])


def test_one_pod_without_a_sample_is_404(caller: Caller) -> None:
    answer = caller.get(f"{CUSTOM}/v1beta2/namespaces/shop/pods/idle-0/open_connections")
    assert answer.status == 404
    assert answer.message.startswith("the server could not find the metric open_connections for pods idle-0: ")


def test_pods_whose_value_is_nan_or_infinite_are_left_out_and_never_zero(adapter: Adapter, caller: Caller) -> None:
    assert caller.pods("odd", **WEB).values == {"web-2": Decimal(3)}
    for reason in ("nan", "inf"):
        assert adapter.metric("tidewatch_adapter_dropped_samples_total", reason=reason) >= 1


@pytest.mark.parametrize(("pod", "what"), [("web-0", "NaN"), ("web-1", "infinite")])
def test_a_pod_whose_only_value_is_not_finite_is_404_with_the_reason(caller: Caller, pod: str, what: str) -> None:
    answer = caller.get(f"{CUSTOM}/v1beta2/namespaces/shop/pods/{pod}/odd")
    assert (answer.status, what in answer.message) == (404, True)


def test_external_series_without_a_finite_value_make_the_whole_answer_an_error(
    caller: Caller,
) -> None:
    answer = caller.external("odd_rows")
    assert answer.status == 500
    assert "2 of 3 series have no finite value" in answer.message
    assert 'odd{namespace="shop",pod="web-0"} is nan' in answer.message


def test_two_samples_for_one_pod_are_an_error_that_names_the_differing_label(caller: Caller) -> None:
    by_name = caller.get(f"{CUSTOM}/v1beta2/namespaces/shop/pods/web-0/twice")
    alone = caller.pods("twice", labelSelector="edge")
    for answer in (by_name, alone):
        assert answer.status == 500
        assert "path" in answer.message


def test_a_list_warns_about_a_pod_that_is_left_out(caller: Caller) -> None:
    path = f"{CUSTOM}/v1beta2/namespaces/shop/pods/%2A/twice"
    answer = caller.get(path, (("User-Agent", "kubectl/v1.36.0"),), WEB)
    assert answer.values == {"web-1": Decimal(5)}
    (warning,) = answer.warnings
    assert re.match("1 of 3 objects has no value and is left out, such as 'web-0': .* differ in path", warning)


@pytest.mark.parametrize("path", [f"{CUSTOM}/v1beta2/namespaces/shop/pods/%2A", f"{EXTERNAL}/namespaces/shop"])
def test_an_unknown_metric_is_404(caller: Caller, path: str) -> None:
    answer = caller.get(f"{path}/open_conections")
    assert answer.status == 404
    assert answer.message.startswith("the server could not find the metric open_conections for ")


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        (f"{CUSTOM}/v1beta2/namespaces/shop/pods/%2A/queue_depth", "as external metric"),
        (f"{CUSTOM}/v1beta2/namespaces/shop/services/front/open_connections", "for pods"),
        (f"{EXTERNAL}/namespaces/shop/open_connections", "for pods"),
    ],
)
def test_a_metric_served_for_another_kind_or_api_is_404_and_the_message_names_it(
    caller: Caller, path: str, hint: str
) -> None:
    answer = caller.get(path)
    assert (answer.status, hint in answer.message) == (404, True)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("namespaces/shop/pods/%2A/open_connections", "labelSelector=app%3D%3D%3D"),
        ("namespaces/shop/pods/%2A/open_connections", "metricLabelSelector=service+in+front"),
        ("namespaces/shop/pods/%2A/open_connections", "metricLabelSelector=shards%3E5"),
        ("namespaces/Shop/pods/%2A/open_connections", ""),
        ("namespaces/shop/pods/..%2F/open_connections", ""),
    ],
)
def test_an_invalid_selector_or_name_is_400(caller: Caller, path: str, query: str) -> None:
    answer = caller.ask("GET", f"{CUSTOM}/v1beta2/{path}?{query}")
    assert (answer.status, answer.document["reason"]) == (400, "BadRequest")


def test_a_label_that_needs_quotes_is_answered_or_the_version_of_prometheus_is_named(caller: Caller) -> None:
    """Prometheus 3 knows that no series has the label; Prometheus 2 cannot read such a query."""
    path = f"{CUSTOM}/v1beta2/namespaces/shop/pods/%2A/open_connections"
    answer = caller.ask("GET", f"{path}?metricLabelSelector=service.name%3Dfront")
    assert answer.status == 500 or answer.items == []
    if answer.status == 500:
        assert "names between quotes need Prometheus 3" in answer.message


def test_an_unknown_kind_is_404(caller: Caller) -> None:
    answer = caller.get(f"{CUSTOM}/v1beta2/namespaces/shop/gadgets.example.com/a/open_connections")
    assert answer.status == 404
    assert "gadgets" in answer.message


def test_a_query_that_prometheus_refuses_is_500_with_the_error_of_prometheus(caller: Caller) -> None:
    answer = caller.pods("refused", **WEB)
    assert answer.status == 500
    assert "many-to-many matching not allowed" in answer.message or "found duplicate series" in answer.message


@pytest.fixture(scope="module")
def strict_adapter(
    tmp_path_factory: pytest.TempPathFactory, trust: Trust, prometheus: PrometheusProcess
) -> Iterator[Adapter]:
    folder: Path = tmp_path_factory.mktemp("strict")
    with SHOP.adapter(folder, trust, prometheus, "--on-no-data=error", "--max-demand-per-namespace=3") as running:
        yield running


def test_missing_data_is_404_with_on_no_data_error(strict_adapter: Adapter) -> None:
    with strict_adapter.caller() as caller:
        answers = [caller.pods("open_connections", labelSelector="app=idle"), caller.external("queue_never")]
        assert [answer.status for answer in answers] == [404, 404]
        assert all("there is no sample for it in Prometheus" in answer.message for answer in answers)


def test_a_namespace_over_its_demand_limit_gets_429_and_others_are_served(strict_adapter: Adapter) -> None:
    def answers_in(namespace: str) -> list[Answer]:
        with strict_adapter.caller() as caller:
            return [
                caller.external("queue_depth", namespace, labelSelector=f"queue in (orders,q{number})")
                for number in range(4)
            ]

    assert [answer.status for answer in answers_in("other")] == [200, 200, 200, 429]
    with strict_adapter.caller() as caller:
        assert caller.pods("open_connections", **WEB).status == 200
