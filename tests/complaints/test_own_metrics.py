"""The state of an adapter, seen from outside."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.support.serving import eventually

if TYPE_CHECKING:
    from tests.support.caller import Caller
    from tests.support.serving import Adapter

GROUPS = ("custom.metrics.k8s.io", "external.metrics.k8s.io")


def test_own_metrics_show_every_rule_and_the_age_of_answers__prometheus_adapter_218_513(
    adapter: Adapter, caller: Caller
) -> None:
    """This also answers cybozu-go/neco 2058; that a failing rule is counted is tested for the complaint PA 99."""
    started = time.time() - adapter.metric("process_start_time_seconds")
    answered = adapter.metric("tidewatch_adapter_answer_age_seconds_count")
    assert caller.pods("connections", labelSelector="app=web").status == 200
    eventually(lambda: adapter.metric("tidewatch_adapter_answer_age_seconds_count") > answered)
    assert (
        time.time() - adapter.metric("tidewatch_adapter_rule_last_success_timestamp_seconds", rule="rules[0]") < started
    )
    assert adapter.metric("tidewatch_adapter_rules", state="ok") == 10
    assert adapter.metric("tidewatch_adapter_prometheus_queries_total", kind="instant", result="ok") >= 1


def test_requests_are_counted_and_timed_for_service_levels__keda_3120_4460(adapter: Adapter, caller: Caller) -> None:
    def counted(group: str, code: str) -> float:
        return adapter.metric("tidewatch_adapter_requests_total", group=group, verb="GET", code=code)

    def timed(group: str) -> float:
        return adapter.metric("tidewatch_adapter_request_duration_seconds_count", group=group)

    def seen() -> list[tuple[float, float, float]]:
        return [(counted(group, "200"), counted(group, "404"), timed(group)) for group in GROUPS]

    before = seen()
    for metric in ("connections", "no_such_metric"):
        caller.pods(metric, labelSelector="app=web")
    for metric in ("queue_depth", "no_such_metric"):
        caller.external(metric)
    expected = [(good + 1, missing + 1, all_of_them + 2) for good, missing, all_of_them in before]
    # An answer may be read before it is counted.
    eventually(lambda: seen() == expected)


def test_metric_names_that_dashboards_of_prometheus_adapter_use_are_kept__prometheus_adapter_218(
    adapter: Adapter, caller: Caller
) -> None:
    assert caller.external("queue_depth").status == 200
    assert adapter.metric("metrics_apiserver_metric_freshness_seconds_count", group=GROUPS[1]) >= 1
    assert adapter.metric("prometheus_adapter_prometheus_client_request_duration_seconds_count", path="/api/v1/query")
