"""The program's metrics about itself: names, labels and types that dashboards and alerts rely on."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapter.metrics.readings.samples.object_reading import Dropped
from tests.support.serving import eventually

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Caller
    from tests.support.serving import Adapter

OWN = "tidewatch_adapter_"
METRICS = {
    f"{OWN}requests": ("counter", {"group", "verb", "code"}),
    f"{OWN}request_duration_seconds": ("histogram", {"group"}),
    f"{OWN}prometheus_queries": ("counter", {"kind", "result"}),
    f"{OWN}prometheus_query_duration_seconds": ("histogram", set()),
    f"{OWN}rules": ("gauge", {"state"}),
    f"{OWN}rule_plan": ("gauge", {"rule", "plan"}),
    f"{OWN}rule_last_success_timestamp_seconds": ("gauge", {"rule"}),
    f"{OWN}config_last_reload_successful": ("gauge", set()),
    f"{OWN}config_reloads": ("counter", {"result"}),
    f"{OWN}demanded_metrics": ("gauge", set()),
    f"{OWN}answer_age_seconds": ("histogram", set()),
    f"{OWN}dropped_samples": ("counter", {"reason"}),
    f"{OWN}task_runs": ("counter", {"task", "result"}),
    "tidewatch_build_info": ("gauge", {"version", "python_version"}),
    # prometheus-adapter's.
    "prometheus_adapter_prometheus_client_request_duration_seconds": ("histogram", {"path", "server"}),
    "metrics_apiserver_metric_freshness_seconds": ("histogram", {"group"}),
}
NEED_A_CLUSTER = {
    f"{OWN}watch_synced": "gauge",
    f"{OWN}authorization_reviews": "counter",
}
"""These metrics are described even where nothing is watched and no access is reviewed."""
VALUES = {
    f"{OWN}requests": {
        "group": {"custom.metrics.k8s.io", "external.metrics.k8s.io", "metrics.k8s.io", "other"},
        "verb": {"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "OTHER"},
    },
    f"{OWN}rules": {"state": {"ok", "refused", "retained", "failing"}},
    f"{OWN}rule_plan": {"plan": {"wide", "namespace", "exact"}},
    f"{OWN}config_reloads": {"result": {"success", "partial", "failure"}},
    f"{OWN}dropped_samples": {
        "reason": {
            *("nan", "inf", "stale", "foreign_namespace", "unknown_object"),
            *("duplicate", "negative", "histogram", "too_large"),
        }
    },
    f"{OWN}prometheus_queries": {"kind": {"instant", "series", "clock"}},
    "prometheus_adapter_prometheus_client_request_duration_seconds": {"path": {"/api/v1/query", "/api/v1/series"}},
    "metrics_apiserver_metric_freshness_seconds": {
        "group": {"custom.metrics.k8s.io", "external.metrics.k8s.io", "metrics.k8s.io"}
    },
}
"""The values of labels that have few and known values."""
ALWAYS_ALL = {
    (f"{OWN}rules", "state"),
    (f"{OWN}config_reloads", "result"),
    (f"{OWN}dropped_samples", "reason"),
    ("prometheus_adapter_prometheus_client_request_duration_seconds", "path"),
}


@pytest.fixture(scope="module")
def families(adapter: Adapter) -> dict[str, Metric]:
    """Return the families of the program's metrics after some requests of every kind."""
    with adapter.caller() as caller:
        ask_for_everything(caller)
        eventually(lambda: adapter.metric(f"{OWN}rule_plan") > 0)
    return {family.name: family for family in text_string_to_metric_families(adapter.plain("/metrics").text)}


def ask_for_everything(caller: Caller) -> None:
    for metric in ("open_connections", "odd", "twice", "never_seen", "refused", "no-such-metric"):
        caller.pods(metric, labelSelector="app=web")
    caller.external("queue_depth")
    for path in ("/apis", "/version", "/nothing/here", "/apis/custom.metrics.k8s.io/v1beta2"):
        caller.get(path)
    for path in ("/apis/made.up/" + "x" * 20, "/apis/custom.metrics.k8s.io/v9/namespaces/a/pods/b/c"):
        assert caller.get(path).status == 404
    assert caller.ask("BREW", "/apis").status == 405


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_its_type_and_its_labels(families: dict[str, Metric], name: str) -> None:
    kind, labels = METRICS[name]
    family = families[name]
    assert family.type == kind
    assert family.documentation
    assert family.samples
    for sample in family.samples:
        assert sample.labels.keys() - {"le"} == labels, sample


@pytest.mark.parametrize("name", NEED_A_CLUSTER)
def test_metrics_that_need_a_cluster_are_described_without_one(families: dict[str, Metric], name: str) -> None:
    assert families[name].type == NEED_A_CLUSTER[name]


@pytest.mark.parametrize(("name", "label"), [(name, label) for name, labels in VALUES.items() for label in labels])
def test_a_label_has_only_known_values_whatever_was_requested(
    families: dict[str, Metric], name: str, label: str
) -> None:
    found = {sample.labels[label] for sample in families[name].samples}
    assert found <= VALUES[name][label]
    assert found
    if (name, label) in ALWAYS_ALL:
        assert found == VALUES[name][label]


def test_the_reasons_of_dropped_samples_are_complete() -> None:
    assert {reason.value for reason in Dropped} == VALUES[f"{OWN}dropped_samples"]["reason"]


def test_the_server_label_is_the_url_of_prometheus(families: dict[str, Metric], prometheus: PrometheusProcess) -> None:
    samples = families["prometheus_adapter_prometheus_client_request_duration_seconds"].samples
    assert {sample.labels["server"] for sample in samples} == {prometheus.url}


def test_dropped_samples_are_counted_by_reason(adapter: Adapter, families: dict[str, Metric]) -> None:
    assert families
    for reason in ("nan", "inf", "duplicate"):
        eventually(partial(_dropped_samples, adapter, reason))


def test_a_rule_whose_query_prometheus_refuses_is_logged_once_until_it_works_again(
    adapter: Adapter, families: dict[str, Metric]
) -> None:
    assert families
    eventually(lambda: adapter.metric(f"{OWN}rules", state="failing") >= 1)
    # A query that is not repeated is forgotten, and with it the failure: the state may have ended before this line.
    lines = adapter.said(
        r" (WARNING|INFO) .*rules\[3\] \(\S+rules\.yaml:\d+\) (fails|works again).* rule=rules\[3\] .*"
    )
    assert "reason=refused" in lines[0]
    assert [" state=failing " in line for line in lines] == [number % 2 == 0 for number in range(len(lines))]


def _dropped_samples(adapter: Adapter, reason: str) -> float:
    return adapter.metric(f"{OWN}dropped_samples_total", reason=reason)


def test_the_time_of_the_last_success_is_exposed_for_each_rule(adapter: Adapter, families: dict[str, Metric]) -> None:
    samples = families[f"{OWN}rule_last_success_timestamp_seconds"].samples
    started = adapter.metric("process_start_time_seconds")
    assert {sample.labels["rule"] for sample in samples} >= {"rules[0]", "rules[1]", "externalRules[0]"}
    assert all(sample.value >= started - 1 for sample in samples)
