"""Queries as people write them into rules: which plan each has, and that every plan gives the exact answer."""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING

import pytest

from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.plans import plan_of
from tests.support.plan_trials import EXTERNAL, NODES, PODS, Tally, custom_metric, external_metric, try_template

if TYPE_CHECKING:
    from tests.support.plan_samples import AskedPrometheus

_OF_PODS = [
    # The default rules of prometheus-adapter's chart, and their kin.
    ("sum(<<.Series>>{M}) by (K)", "wide"),
    ("sum(rate(http_requests_total{M}[5m])) by (K)", "wide"),
    ('sum(rate(container_cpu_usage_seconds_total{M,container!="POD"}[5m])) by (K)', "wide"),
    ("avg(websocket_connections{M}) by (K)", "wide"),
    ("max_over_time(websocket_connections{M}[2m])", "wide"),
    ("sum(increase(http_requests_total{M}[1m] offset 1m)) by (K) / 60", "wide"),
    ("histogram_quantile(0.99, sum(rate(http_request_duration_seconds_bucket{M}[5m])) by (K, le))", "wide"),
    ("histogram_quantile(0.9, sum by (le) (rate(http_request_duration_seconds_bucket{M}[5m])))", "exact"),
    # The share of errors.
    (
        ('sum by (K) (rate(http_requests_total{M,code="500"}[5m])) / sum by (K) (rate(http_requests_total{M}[5m]))'),
        "wide",
    ),
    (
        (
            'sum(rate(http_requests_total{M,code="500"}[5m])) by (K)'
            " / on (K) sum(rate(http_requests_total{M}[5m])) by (K) * 100 > 0"
        ),
        "wide",
    ),
    (
        (
            "sum by (K, code) (rate(http_requests_total{M}[5m]))"
            " / ignoring (code) group_left sum by (K) (rate(http_requests_total{M}[5m]))"
        ),
        "wide",
    ),
    ("rate(http_errors_total{M}[5m]) / rate(http_requests_total{M}[5m])", "wide"),
    # Used of what is allowed.
    (
        ("sum by (K) (container_memory_working_set_bytes{M}) / sum by (K) (kube_pod_container_resource_limits{M})"),
        "wide",
    ),
    (
        ("sum by (K) (container_memory_working_set_bytes{M}) / on (K) sum by (K) (kube_pod_container_resource_limits)"),
        "namespace",
    ),
    (
        (
            "sum by (namespace, pod) (container_memory_working_set_bytes{M})"
            " / on (namespace, pod) sum by (namespace, pod) (kube_pod_container_resource_limits)"
        ),
        "wide",
    ),
    (
        (
            "sum by (pod) (container_memory_working_set_bytes{M})"
            " / on (pod) sum by (pod) (kube_pod_container_resource_limits)"
        ),
        "namespace",
    ),
    # Joins with the series of kube-state-metrics about pods.
    ("sum by (K) (websocket_connections{M} * on (namespace, pod) group_left (owner) kube_pod_labels)", "wide"),
    ('websocket_connections{M} and on (namespace, pod) kube_pod_info{node="n1"}', "wide"),
    ("websocket_connections{M} * on (pod) group_left (owner) kube_pod_labels", "wide"),
    ("kube_pod_info * on (namespace, pod) group_right () websocket_connections{M}", "wide"),
    ("node_load * on (node) group_right () kube_pod_info{M}", "wide"),
    ("kube_pod_info{M} * on (node) group_left () sum by (node) (node_load)", "wide"),
    # Defaults for what has no series.
    ("sum(websocket_connections{M}) by (K) or vector(0)", "wide"),
    ("sum(rate(http_errors_total{M}[5m])) by (K) or sum(queue_depth{M}) by (K) * 0", "wide"),
    ("sum(queue_depth{M}) by (K) or kube_pod_info * 0", "exact"),
    ("absent(websocket_connections{M})", "exact"),
    ("sum(queue_depth{M}) by (K) unless absent(queue_depth{M})", "exact"),
    # What picks, counts or ranks.
    ("topk(5, websocket_connections{M})", "exact"),
    ('count_values("value", queue_depth{M})', "exact"),
    ("count(queue_depth{M} > 10) by (K)", "wide"),
    ("quantile by (K) (0.95, queue_depth{M})", "wide"),
    ("max by (K) (queue_depth{M}) > bool 5", "wide"),
    # Times and trends.
    ("time() - max by (K) (timestamp(queue_depth{M}))", "wide"),
    ("predict_linear(websocket_connections{M}[10m], 300)", "wide"),
    ("clamp_min(deriv(queue_depth{M}[10m]), 0)", "wide"),
    ("max_over_time(sum by (K) (rate(http_requests_total{M}[1m]))[5m:30s])", "wide"),
    ("clamp_max(avg_over_time(queue_depth{M}[5m]), 100)", "wide"),
    # Labels.
    ('label_replace(sum by (K) (queue_depth{M}), "app", "$1", "pod", "(.*)-[0-9]+")', "wide"),
    ('sum by (pod) (label_replace(queue_depth{M}, "pod", "$1", "instance", "(.*):.*"))', "exact"),
    ("avg without (instance, code) (rate(http_requests_total{M}[5m]))", "wide"),
    ("sum without (namespace) (queue_depth{M})", "namespace"),
    # Numbers of all namespaces in the query of one.
    ("queue_depth{M} / scalar(sum(queue_depth))", "wide"),
    ("queue_depth{M} / scalar(sum(queue_depth{M}))", "exact"),
    ("queue_depth{M} > on () group_left () avg(queue_depth)", "wide"),
]
_OF_NODES = [
    ("sum by (K) (rate(node_cpu_seconds_total{M}[5m]))", "wide"),
    ('1 - avg by (K) (rate(node_cpu_seconds_total{M,mode="idle"}[5m]))', "wide"),
    ("sum by (node) (node_load{M}) / on (node) group_left (zone) node_info", "wide"),
    ("avg(node_load{M})", "exact"),
]
_EXTERNAL = [
    ("sum(<<.Series>>{M}) by (K)", "wide"),
    ("max(kafka_consumergroup_lag{M})", "wide"),
    ("sum(rate(http_requests_total{M}[2m]))", "wide"),
    ("sum(kafka_consumergroup_lag{M}) or vector(0)", "wide"),
    ("kafka_consumergroup_lag{M}", "wide"),
    ("max_over_time(kafka_consumergroup_lag{M}[5m])", "wide"),
    ("avg(queue_depth{M})", "exact"),
    ("sum(queue_depth{M}) / count(queue_depth{M})", "exact"),
    ("scalar(sum(queue_depth{M}))", "exact"),
    ("histogram_quantile(0.9, sum by (le) (rate(http_request_duration_seconds_bucket{M}[5m])))", "exact"),
]


def spelled(short: str) -> str:
    return re.sub(r"\b[MK]\b", lambda letter: {"M": "<<.LabelMatchers>>", "K": "<<.GroupBy>>"}[letter[0]], short)


@pytest.mark.parametrize(("template", "plan"), _OF_PODS)
def test_common_queries_of_pods_have_the_expected_plan_and_exact_answers(
    prometheus: AskedPrometheus, template: str, plan: str
) -> None:
    metric, tally = custom_metric(spelled(template)), Tally()
    assert plan_of(metric).kind == PlanKind(plan), plan_of(metric).reasons
    try_template(prometheus, metric, Random(1).sample(PODS.requesters, 12), tally)
    assert not tally.differences, "\n".join(map(str, tally.differences))


@pytest.mark.parametrize(("template", "plan"), _OF_NODES)
def test_common_queries_of_nodes_have_the_expected_plan_and_exact_answers(
    prometheus: AskedPrometheus, template: str, plan: str
) -> None:
    metric, tally = custom_metric(spelled(template), nodes=True), Tally()
    assert plan_of(metric).kind == PlanKind(plan), plan_of(metric).reasons
    try_template(prometheus, metric, NODES.requesters, tally)
    assert not tally.differences, "\n".join(map(str, tally.differences))


@pytest.mark.parametrize(("template", "plan"), _EXTERNAL)
def test_common_external_queries_have_the_expected_plan_and_exact_answers(
    prometheus: AskedPrometheus, template: str, plan: str
) -> None:
    metric, tally = external_metric(spelled(template)), Tally()
    assert plan_of(metric, frozenset({"queue", "instance"})).kind == PlanKind(plan)
    try_template(prometheus, metric, Random(1).sample(EXTERNAL.requesters, 20), tally)
    assert not tally.differences, "\n".join(map(str, tally.differences))


def test_the_queries_find_values_to_compare(prometheus: AskedPrometheus) -> None:
    tally = Tally()
    for template, plan in _OF_PODS:
        if plan == "wide":
            try_template(prometheus, custom_metric(spelled(template)), Random(1).sample(PODS.requesters, 12), tally)
    assert tally.with_values > tally.compared / 3
