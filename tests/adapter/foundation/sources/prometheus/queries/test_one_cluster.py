"""One store that holds several clusters: with matchers, nothing of another cluster is ever seen."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.options.backend_checks import judge_clusters
from adapter.foundation.promql.narrowing import Matchers
from adapter.foundation.reports.lines import CheckStatus
from adapter.foundation.sources.prometheus.errors import PrometheusError, UnreadableForMatchersError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.sources.prometheus.queries.clusters import clusters_in
from adapter.foundation.sources.prometheus.queries.connection import range_values
from adapter.foundation.time.pace import UNPACED
from adapter.metrics.readings.answers import BySelector
from adapter.metrics.readings.errors import QueryRefusedByPrometheusError
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.queries.refresher import SampleRefresher
from recommender.running.queries.query_values import QueryValues
from tests.adapter.foundation.promql.queries import QUERIES, MadeQuery
from tests.adapter.nodes.queries.exporters import NodeExporter, text_of
from tests.support.checkout import CHECKOUT
from tests.support.raw_server import answering, raw_server
from tests.support.readings import FakeClock, Harness, MadeUpObjects, make_harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.prometheus import ScrapedPrometheus

AT = int(time.time() // 60) * 60 - 120
FOREIGN = 100_000.0
"""All values of the other cluster are at least this large."""
OURS = Matchers.read('cluster="eu-1"')
RULES = """
rules:
- seriesQuery: 'load{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: 'queue_depth{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {as: unreadable}
  metricsQuery: 'sum by (<<.GroupBy>>) (last_over_time(<<.Series>>{<<.LabelMatchers>>}[5m] offset (1 * 1)))'
externalRules:
- seriesQuery: 'queue_depth{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>})'
"""


def cluster(name: str, offset: float, *pods: str) -> dict[str, list[str]]:
    """Return samples of 10 minutes by family; each sample has its own number, counted from the offset."""
    label = f',cluster="{name}"' if name else ""
    found: dict[str, list[str]] = {"load": [], "queue_depth": [], "requests": []}
    for number, pod in enumerate(pods, 1):
        own = f'namespace="shop",pod="{pod}"{label}'
        for ago in range(600, -60, -15):
            at = AT - ago
            found["load"].append(f"load{{{own}}} {offset + 10 * number + ago % 7} {at}")
            found["queue_depth"].append(f"queue_depth{{{own}}} {offset + number} {at}")
            found["requests"].append(f"requests_total{{{own}}} {offset + number * (600 - ago)} {at}")
    return found


OWN = cluster("eu-1", 0.0, "web-0", "web-1")
OTHERS = (cluster("us-1", FOREIGN, "web-0", "web-1", "web-2"), cluster("", 2 * FOREIGN, "web-0"))


def history(*clusters: dict[str, list[str]]) -> str:
    lines = []
    for family, kind in (("load", "gauge"), ("queue_depth", "gauge"), ("requests", "counter")):
        lines += [f"# TYPE {family} {kind}", *(line for each in clusters for line in each[family])]
    return "\n".join([*lines, "# EOF", ""])


@dataclass(frozen=True)
class Stores:
    """A client with matchers of the store of all clusters, and a client of our own cluster's Prometheus."""

    narrowed: PrometheusClient
    own: PrometheusClient
    settings: PrometheusSettings
    """Settings of `narrowed`."""


@pytest.fixture(scope="module")
def stores(start_prometheus: Callable[..., ScrapedPrometheus]) -> Iterator[Stores]:
    every, own = start_prometheus(history=history(OWN, *OTHERS)), start_prometheus(history=history(OWN))
    narrowing = PrometheusSettings(every.url, matchers=OURS)
    with ExitStack() as stack:
        narrowed = stack.enter_context(PrometheusClient(narrowing))
        yield Stores(narrowed, stack.enter_context(PrometheusClient(PrometheusSettings(own.url))), narrowing)


def outcome(client: PrometheusClient, query: str) -> list[str] | str:
    """Return the answer as comparable text, or the kind of error."""
    try:
        answer = client.instant(query, timeout_seconds=10, at=AT)
        samples = [sample for batch in answer.batches(UNPACED) for sample in batch]
    except PrometheusError as error:
        return type(error).__name__
    return sorted(f"{sorted(each.labels.items())} {each.value!r}" for each in samples)


@given(QUERIES)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_query_is_answered_as_by_the_cluster_s_own_prometheus(stores: Stores, query: MadeQuery) -> None:
    found = outcome(stores.narrowed, query.written())
    assume(found != UnreadableForMatchersError.__name__)
    assert found == outcome(stores.own, query.written(str(OURS)))


FORGED: Final = (
    'label_replace(load, "cluster", "us-1", "", "") and on (cluster) load{cluster="us-1"}',
    'label_replace(load, "cluster", "us-1", "", "") * on (pod, cluster) group_left load{cluster=~".*"}',
    'label_join(load, "cluster", "-", "us", "pod")',
    'group by (cluster) ({__name__=~".+"})',
    'count_values("cluster", load)',
    "max_over_time(sum by (cluster) (load)[5m:1m] @ end() offset 1m)",
    'sum(max_over_time((load unless load{cluster="eu-1"})[2m:30s]))',
    'histogram_quantile(0.9, label_replace(rate(requests_total[2m]), "le", "+Inf", "", ""))',
    'topk by (cluster) (1, {__name__="load",cluster!="eu-1"} or load)',
    'scalar(sum(load)) + scalar(absent(load{cluster="us-1"}))',
    "sum without (pod) (load) # } or load{",
    """load{pod=~'.*} or load{cluster="us-1"'} or queue_depth""",
    "sort_desc(last_over_time(load[1m] @ start())) > bool on () group_right load",
)


@pytest.mark.parametrize("query", FORGED)
def test_no_forged_query_returns_data_of_another_cluster(stores: Stores, query: str) -> None:
    assert outcome(stores.narrowed, query) == outcome(stores.own, query)


def test_a_query_for_another_cluster_finds_nothing(stores: Stores) -> None:
    assert outcome(stores.narrowed, 'load{cluster="us-1"} or load{cluster=""}') == []


def test_lookups_and_ranges_return_only_our_cluster(stores: Stores) -> None:
    series = stores.narrowed.series('{__name__=~".+"}', start=AT - 600, timeout_seconds=10)
    found = [labels for batch in series.batches(UNPACED) for labels in batch]
    assert len(found) == 6
    assert {labels["cluster"] for labels in found} == {"eu-1"}
    whole = stores.narrowed.range("load", start=AT - 60, end=AT, step_seconds=60, timeout_seconds=10)
    assert all(max(one.values) < FOREIGN for one in whole.series)
    assert len(range_values(stores.settings, "load", AT - 60, AT, 60, 10)) == 2


@pytest.fixture
def harness(stores: Stores) -> Harness:
    clock = FakeClock(wall_offset=AT - 1000.0)
    made = make_harness(stores.narrowed, objects=MadeUpObjects({"shop": ["web-0", "web-1"]}), rules=RULES, clock=clock)
    made.pass_time(0.25)
    return made


def test_the_metrics_api_serves_only_our_cluster(harness: Harness) -> None:
    values = harness.readings.objects(harness.pods("load"), "shop", BySelector(EVERYTHING), EVERYTHING).values
    assert set(dict(values)) == {"web-0", "web-1"}
    assert all(value < FOREIGN for value in dict(values).values())
    rows = harness.readings.external(harness.external("queue_depth"), "shop", EVERYTHING).rows
    assert [row.value for row in rows] == [3.0]


def test_only_a_rule_whose_query_cannot_be_read_is_refused(harness: Harness) -> None:
    with pytest.raises(QueryRefusedByPrometheusError, match=r'matchers cluster="eu-1" cannot be added to each of its'):
        harness.readings.objects(harness.pods("unreadable"), "shop", BySelector(EVERYTHING), EVERYTHING)
    assert harness.readings.objects(harness.pods("load"), "shop", BySelector(EVERYTHING), EVERYTHING).values


def test_a_recommendation_uses_only_our_cluster(stores: Stores) -> None:
    values = QueryValues(PrometheusClient(stores.settings), UNPACED, 10.0)
    try:
        found = values.samples("sum_over_time(queue_depth[15m] @ " + f"{AT})")
        assert {sample.labels["pod"] for sample in found.value} == {"web-0", "web-1"}  # type: ignore[union-attr]
    finally:
        values.close()


def test_the_loads_of_nodes_are_those_of_our_cluster(start_prometheus: Callable[..., ScrapedPrometheus]) -> None:
    at = AT // 240 * 240 - 240
    exporters = (
        NodeExporter("shared:9100", labels={"cluster": "eu-1"}, stuck=True),
        NodeExporter("shared:9100", labels={"cluster": "us-1"}),
        NodeExporter("ours:9100", labels={"cluster": "eu-1"}),
        NodeExporter("theirs:9100", labels={"cluster": "us-1"}),
    )
    every = start_prometheus(history=text_of(exporters, at - 1200.0, at))
    with PrometheusClient(PrometheusSettings(every.url, matchers=OURS)) as client:
        grid = SampleRefresher(client, SchedulingSettings()).refresh(at, None, None).samples.grids[LoadResource.CPU]
    assert set(grid.nodes) == {"shared", "ours"}
    # Counters that stand still have no load: what is there would be the other cluster's.
    assert np.isnan(grid.values[grid.nodes.index("shared")]).all()
    assert not np.isnan(grid.values[grid.nodes.index("ours")]).all()


SHIPPED = CHECKOUT / "rules" / "adapter" / "recommendations.yaml"
"""Shipped rules, which the chart serves with another matcher (tests/e2e/install/test_chart_parts.py)."""


def test_a_recommendation_of_another_namespace_changes_nothing(
    start_prometheus: Callable[..., ScrapedPrometheus],
) -> None:
    target = 'target_namespace="shop",target_kind="Deployment",target_name="web"'
    names = ("tidewatch_recommended_replicas", "tidewatch_predicted_load")
    lines = [
        line
        for name in names
        for line in (
            f"# TYPE {name} gauge",
            f'{name}{{namespace="tidewatch",pod="r-0",{target}}} 3 {AT}',
            f'{name}{{namespace="evil",pod="p-0",{target}}} 3000 {AT}',
            f'{name}{{namespace="evil",pod="p-0",exported_namespace="tidewatch",{target}}} 4000 {AT}',
            f'{name}{{namespace="evil",pod="p-0",{target.replace("web", "other")}}} 9 {AT}',
        )
    ]
    prometheus = start_prometheus(history="\n".join([*lines, "# EOF", ""]))
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        objects = MadeUpObjects({"shop": ["web", "other"]})
        clock = FakeClock(wall_offset=AT - 1000.0)
        harness = make_harness(client, objects=objects, rules=SHIPPED.read_text(), clock=clock)
        harness.pass_time(0.25)
        for name in ("recommended_replicas", "predicted_load"):
            metric = harness.readings.catalogue.find_custom("deployments.apps", namespaced=True, name=name)
            assert metric is not None
            found = harness.readings.objects(metric, "shop", BySelector(EVERYTHING), EVERYTHING)
            assert dict(found.values) == {"web": 3.0}
            rows = harness.readings.external(harness.external(name), "shop", EVERYTHING).rows
            assert [row.value for row in rows] == [3.0]


class TestClustersOfAStore:
    def test_labels_of_clusters_with_several_values_are_found(
        self, start_prometheus: Callable[..., ScrapedPrometheus]
    ) -> None:
        now = int(time.time())
        lines = [
            "# TYPE node_uname_info gauge",
            *(f'node_uname_info{{instance="n{n}",cluster="{c}"}} 1 {now}' for n, c in enumerate(("eu-1", "us-1"))),
            "# TYPE kube_node_info gauge",
            f'kube_node_info{{node="n0",cluster="eu-1",cluster_name="only"}} 1 {now}',
            "# TYPE pg_up gauge",
            f'pg_up{{k8s_cluster="a"}} 1 {now}',
            f'pg_up{{k8s_cluster="b"}} 1 {now}',
            "# EOF\n",
        ]
        store = PrometheusSettings(start_prometheus(history="\n".join(lines)).url)
        found = clusters_in(store, 10)
        assert found == {"cluster": ("eu-1", "us-1"), "cluster_name": ("", "only")}
        line = judge_clusters(found, "", "--prometheus-matchers")
        assert (line.status, line.fix.partition(",")[0]) == (
            CheckStatus.WARNING,
            """set --prometheus-matchers 'cluster="eu-1"'""",
        )
        assert "cluster: eu-1, us-1" in line.message
        assert not clusters_in(replace(store, matchers=Matchers.read('cluster="us-1"')), 10)

    @pytest.mark.parametrize("label", ["__tenant_id__", "vm_account_id", "vm_project_id"])
    def test_tenants_that_are_asked_at_once_count_as_clusters(self, label: str) -> None:
        """Mimir, Cortex and VictoriaMetrics add the label, and sums then mix the nodes of all these tenants."""
        series = [{"metric": {label: name}, "value": [1, "1"]} for name in ("0", "1")]
        answer = {"status": "success", "data": {"resultType": "vector", "result": series}}
        with raw_server(answering(json.dumps(answer).encode())) as server:
            assert clusters_in(PrometheusSettings(server.url), 10) == {label: ("0", "1")}
        assert label in server.requests[0].body.decode()

    def test_tenants_that_share_the_exporters_of_one_cluster_are_no_clusters(self) -> None:
        """Those of the machines often have a tenant of their own. `init` would refuse such a store."""
        by_tenant = (("kube_node_info", "platform"), ("machine_cpu_cores", "platform"), ("node_uname_info", "machines"))
        series = [{"metric": {"__name__": name, "__tenant_id__": of}, "value": [1, "1"]} for name, of in by_tenant]
        answer = {"status": "success", "data": {"resultType": "vector", "result": series}}
        with raw_server(answering(json.dumps(answer).encode())) as server:
            assert not clusters_in(PrometheusSettings(server.url), 10)

    def test_one_cluster_or_set_matchers_give_no_warning(self) -> None:
        assert judge_clusters({}, "", "--prometheus-matchers").status is CheckStatus.OK
        assert judge_clusters({"cluster": ("a", "b")}, 'cluster="a"', "--prometheus-matchers").status is CheckStatus.OK
