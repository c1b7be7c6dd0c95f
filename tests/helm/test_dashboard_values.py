"""Dashboards show the right numbers where a query does more than add."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.helm.grafana import queries
from tests.support.prometheus import scraped_prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.prometheus import ScrapedPrometheus

STATUS = "tidewatch_recommendation_status"
FULL, READY, UNKNOWN = "gateway-7d9f8b6c5d-x2k4b", "gateway-7d9f8b6c5d-x2k4c", "gateway-7d9f8b6c5d-x2k4d"
OTHER_POD = "gateway-internal-7d9f8b6c5d-x2k4f"
TARGET = 'target_namespace="chat",target_kind="Deployment",target_name="gateway"'
SCALED = 'scaletargetref_kind="Deployment",scaletargetref_name="gateway"'
TEXT = f"""\
{STATUS}{{recommendation="web",status="ok"}} 0
{STATUS}{{recommendation="web",status="held"}} 1
{STATUS}{{recommendation="web",status="stale"}} 0
{STATUS}{{recommendation="web",status="error"}} 0
{STATUS}{{recommendation="each",status="ok",target_namespace="a",target_name="x"}} 1
{STATUS}{{recommendation="each",status="error",target_namespace="a",target_name="y"}} 1
{STATUS}{{recommendation="chat",status="ok",{TARGET}}} 1
{STATUS}{{recommendation="chat",status="stale",target_namespace="chat",target_name="other"}} 1
tidewatch_readiness_ready{{namespace="chat",pod="{FULL}"}} 0
tidewatch_readiness_connections{{namespace="chat",pod="{FULL}"}} 24000
tidewatch_readiness_limit{{namespace="chat",pod="{FULL}"}} 25000
tidewatch_readiness_ready{{namespace="chat",pod="{READY}"}} 1
tidewatch_readiness_connections{{namespace="chat",pod="{READY}"}} 15000
tidewatch_readiness_limit{{namespace="chat",pod="{READY}"}} 25000
tidewatch_readiness_ready{{namespace="chat",pod="{UNKNOWN}"}} 1
tidewatch_readiness_limit{{namespace="chat",pod="{UNKNOWN}"}} 25000
tidewatch_readiness_ready{{namespace="chat",pod="{OTHER_POD}"}} 0
tidewatch_readiness_connections{{namespace="chat",pod="{OTHER_POD}"}} 0
tidewatch_readiness_limit{{namespace="chat",pod="{OTHER_POD}"}} 25000
kube_horizontalpodautoscaler_info{{namespace="chat",horizontalpodautoscaler="h",{SCALED}}} 1
kube_horizontalpodautoscaler_status_desired_replicas{{namespace="chat",horizontalpodautoscaler="h"}} 7
kube_horizontalpodautoscaler_status_desired_replicas{{namespace="chat",horizontalpodautoscaler="other"}} 99
tidewatch_nodes{{state="known"}} 3
tidewatch_adapter_extender_basis{{basis="metrics"}} 0
tidewatch_adapter_extender_basis{{basis="none"}} 0
tidewatch_adapter_extender_basis{{basis="requests"}} 1
tidewatch_adapter_extender_request_duration_seconds_bucket{{verb="filter",le="+Inf"}} 0
"""


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScrapedPrometheus]:
    with scraped_prometheus(tmp_path_factory.mktemp("values"), TEXT) as running:
        running.wait_for(STATUS)
        yield running


@pytest.mark.parametrize(
    ("name", "panel", "expected"),
    [
        ("recommendations", "Status A", {"web": 1, "each": 3, "chat": 2}),
        ("recommendations", "Without a value A", {"": 2}),
        ("recommendations", "Held A", {"": 1}),
        ("workload", "Status A", {"": 0}),
        ("workload", "Free slots A", {"": 10_000}),
        ("workload", "Full pods A", {"": 1}),
        ("workload", "Connections, limit and forecast D", {"": 75_000}),
        ("workload", "HPA's desired replicas A", {"": 7}),
        ("nodes", "Basis of scores A", {"": 2}),
        ("nodes", "Hot nodes A", {"": 0}),
    ],
)
def test_a_number_is_that_of_the_series(
    prometheus: ScrapedPrometheus, name: str, panel: str, expected: dict[str, float]
) -> None:
    found = prometheus.query(queries(name)[panel])
    assert {row["metric"].get("recommendation", ""): float(row["value"][1]) for row in found} == expected


@pytest.mark.parametrize(
    ("name", "panel"),
    [
        ("adapter", "Errors A"),
        ("adapter", "Killed workers A"),
        ("recommendations", "Refused scale calls A"),
        ("recommendations", "Leaders A"),
        ("predictions", "Worse than headroom A"),
        ("predictions", "Failed fits A"),
        ("nodes", "Slowest calls A"),
        ("nodes", "Failed calls A"),
    ],
)
def test_a_metric_that_nothing_exports_is_not_shown_as_0(prometheus: ScrapedPrometheus, name: str, panel: str) -> None:
    assert prometheus.query(queries(name)[panel]) == []
