"""Complaints about answers that are too slow, memory that grows, and queries that are sent too often."""

from __future__ import annotations

import re
import threading
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.resources import Resource
from tests.complaints.harness import BIG, COMPLAINTS, CONNECTIONS_RULE, MANY, OBJECTS
from tests.support.caller import CUSTOM, PATIENCE_SECONDS, Answer, Caller
from tests.support.fake_apiserver import FakeApiServer
from tests.support.harnesses import PODS, queries_of
from tests.support.raw_server import Peer, RawServer, raw_server
from tests.support.serving import Adapter, Trust, eventually, running_adapter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demo.machine.prometheus import PrometheusProcess

LONGEST_TARGET = 2000
"""The longest target before the server answers 414; 150 names of pods are longer."""
SERIES = 100_000
DISCOVERED_RULE = f"""
rules:
- seriesQuery: '{{__name__=~"^app_.+$",namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
"""
MARKED_RULE = f"""
rules:
- seriesQuery: 'connections{{namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>,marked!="by this test"}})'
"""
AUTOSCALERS = 300


def asked_for_many(caller: Caller) -> Answer:
    """Return the values of 1,500 pods, uncompressed."""
    path = f"{CUSTOM}/v1beta2/namespaces/big/pods/%2A/connections"
    return caller.get(path, [("Accept-Encoding", "identity")], {"labelSelector": "app=web"})


def test_a_query_for_1500_pods_is_as_short_as_one_for_3__prometheus_adapter_668(
    caller: Caller, prometheus: PrometheusProcess
) -> None:
    """`make bench` shows the same with 50,000 pods."""
    assert len(asked_for_many(caller).values) == MANY
    assert len(caller.pods("connections", labelSelector="app=web").values) == 3
    asked = [query for query in queries_of(prometheus) if query.startswith("sum by (pod) (connections")]
    shop, big = (next(query for query in asked if f'namespace="{name}"' in query) for name in ("shop", "big"))
    assert big.replace('"big"', '"shop"') == shop
    assert not any(BIG[0] in query for query in queries_of(prometheus))


@pytest.fixture(scope="module")
def narrow_server(prometheus: PrometheusProcess) -> Iterator[RawServer]:
    """Yield a proxy before Prometheus that accepts only GET and no long addresses."""

    def script(peer: Peer) -> None:
        while request := peer.read():
            if request.method == "POST":
                peer.answer(b"<html>Method Not Allowed</html>", "405 Method Not Allowed", Allow="GET")
            elif len(request.target) > LONGEST_TARGET:
                peer.answer(b"<html>Request-URI Too Large</html>", "414 Request-URI Too Large")
            else:
                with urllib.request.urlopen(prometheus.url + request.target, timeout=10) as response:
                    peer.answer(response.read(), Content_Type="application/json")

    with raw_server(script) as server:
        yield server


def test_1500_pods_are_served_although_long_urls_are_answered_with_414__crane_907(
    tmp_path: Path, trust: Trust, narrow_server: RawServer
) -> None:
    """POST, which has no such limit, is tried first."""
    rules = f"rules:\n{CONNECTIONS_RULE}"
    with (
        running_adapter(tmp_path, trust, prometheus_url=narrow_server.url, rules=rules, objects=OBJECTS) as adapter,
        adapter.caller() as caller,
    ):
        assert len(eventually(lambda: asked_for_many(caller)).values) == MANY
    asked = [(request.method, request.target) for request in narrow_server.requests]
    assert any(method == "POST" for method, _ in asked)
    assert all(len(target) < LONGEST_TARGET for _, target in asked)
    assert any(method == "GET" and target.startswith("/api/v1/query?") for method, target in asked)


def test_requests_cause_no_list_and_wait_for_no_client_rate_limit__prometheus_adapter_1_573(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    """A hundred groups of CRDs cost no requests either (helm-charts 3271, 3811; OCPBUGS-7694).

    `make e2e` counts the same in the audit log of a real API server.
    """
    with FakeApiServer() as cluster:
        for number in range(100):
            cluster.define(Resource(f"g{number}.example.com", "v1", "gadgets", "gadget", "Gadget", namespaced=True))
        cluster.put("pods", "shop", "web-0", {"app": "web"})
        flags = ("--objects=", f"--lister-kubeconfig={cluster.kubeconfig(tmp_path / 'config')}")
        rules = f"rules:\n{CONNECTIONS_RULE}"
        with (
            running_adapter(tmp_path, trust, *flags, prometheus_url=prometheus.url, rules=rules) as adapter,
            adapter.caller() as caller,
        ):
            eventually(lambda: caller.pods("connections", labelSelector="app=web").status == 200)
            eventually(lambda: adapter.plain("/readyz").status == 200)
            before = len(cluster.requests)
            statuses = {caller.pods("connections", labelSelector=f"app=web,n!={one}").status for one in range(100)}
            assert statuses == {200}
            assert len(cluster.requests) == before
            assert len(cluster.asked("list", "pods")) == 1
            assert len(cluster.requests) < 10


def test_a_huge_answer_of_series_is_read_as_a_stream__prometheus_adapter_221_63(tmp_path: Path, trust: Trust) -> None:
    """`make bench` measures it with 200,000 series of a real Prometheus (also sighupio/distribution 394)."""
    padding = "x" * 200
    lines = [
        f'{{"__name__":"app_{number % 50}","namespace":"shop","pod":"web-{number}","image":"{padding}"}}'
        for number in range(SERIES)
    ]
    body = f'{{"status":"success","data":[{",".join(lines)}]}}'.encode()
    assert len(body) > 25_000_000

    may_answer = threading.Event()

    def script(peer: Peer) -> None:
        while request := peer.read():
            may_answer.wait(PATIENCE_SECONDS)
            huge = request.target.startswith("/api/v1/series")
            peer.answer(body if huge else b'{"status":"success","data":{}}', Content_Type="application/json")

    with (
        raw_server(script) as server,
        running_adapter(
            tmp_path, trust, prometheus_url=server.url, rules=DISCOVERED_RULE, objects=OBJECTS, as_installed=True
        ) as adapter,
        adapter.caller() as caller,
    ):
        before = highest_memory(adapter.worker)
        may_answer.set()
        eventually(lambda: len([name for name in caller.listed() if name.startswith("pods/app_")]) == 50)
        assert highest_memory(adapter.worker) - before < len(body) / 2


def highest_memory(process: int) -> int:
    """Return the largest number of bytes that a process ever had resident."""
    (found,) = re.findall(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    return int(found) * 1024


@pytest.fixture(scope="module")
def counted_adapter(
    tmp_path_factory: pytest.TempPathFactory, trust: Trust, prometheus: PrometheusProcess
) -> Iterator[Adapter]:
    """Yield an adapter whose queries can be told from those of others."""
    folder = tmp_path_factory.mktemp("counted")
    with COMPLAINTS.adapter(folder, trust, prometheus, rules=MARKED_RULE) as running:
        yield running


def test_three_hundred_autoscalers_cost_prometheus_no_more_than_one__keda_2282_3670_5624(
    counted_adapter: Adapter, prometheus: PrometheusProcess
) -> None:
    """`tests/e2e/hpa/test_many_autoscalers.py` and `make bench` repeat it with real autoscalers, and with 10,000."""
    with counted_adapter.caller() as caller:
        for number in range(AUTOSCALERS):
            answer = caller.pods("connections", labelSelector=f"app in (web,of-{number})")
            assert len(answer.values) == 3
    asked = [query for query in queries_of(prometheus) if "by this test" in query]
    assert 1 <= len(asked) < AUTOSCALERS / 10


def test_queries_to_prometheus_are_counted__prometheus_adapter_506(
    counted_adapter: Adapter, prometheus: PrometheusProcess
) -> None:
    """docs/query-plans.md and docs/operating.md say when Prometheus is queried."""
    with counted_adapter.caller() as caller:
        assert len(caller.pods("connections", labelSelector="app=web").values) == 3

    def counted_as_asked() -> bool:
        counted = counted_adapter.metric("tidewatch_adapter_prometheus_queries_total", kind="instant")
        return counted == len([query for query in queries_of(prometheus) if "by this test" in query])

    eventually(counted_as_asked)


def test_values_are_renewed_within_seconds_without_an_annotation__kube_metrics_adapter_161_214(
    counted_adapter: Adapter,
) -> None:
    """The flags are the defaults; `tests/e2e/hpa/test_hpa_kubectl.py` sees a real autoscaler follow its metric."""
    with counted_adapter.caller() as caller:
        first = caller.pods("connections", labelSelector="app=web").evaluated_at

        def renewed() -> float:
            return max(0.0, caller.pods("connections", labelSelector="app=web").evaluated_at - first)

        assert eventually(renewed) <= 30
