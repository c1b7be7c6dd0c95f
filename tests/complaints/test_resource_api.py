"""`metrics.k8s.io`: which program serves it, and the cost of its answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.adapter.metrics.identity.certificates.keeping_harness import SERVICE, apiservice
from tests.complaints.harness import COMPLAINTS
from tests.helm.chart import default_values
from tests.support.apiserver_kinds import APISERVICES
from tests.support.forked import run
from tests.support.harnesses import queries_of
from tests.support.object_apiserver import ObjectApiServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Caller
    from tests.support.serving import Adapter, Trust

API = "/apis/metrics.k8s.io/v1beta1"
APISERVICE = "v1beta1.metrics.k8s.io"
LABELS = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}, node: {resource: node}}}"
RULES = f"""
resourceRules:
  cpu:
    containerQuery: sum by (<<.GroupBy>>) (used_cores{{<<.LabelMatchers>>}})
    nodeQuery: sum by (<<.GroupBy>>) (node_cores{{<<.LabelMatchers>>}})
    resources: {LABELS}
    containerLabel: container
  memory:
    containerQuery: sum by (<<.GroupBy>>) (used_bytes{{<<.LabelMatchers>>}})
    nodeQuery: sum by (<<.GroupBy>>) (node_bytes{{<<.LabelMatchers>>}})
    resources: {LABELS}
    containerLabel: container
  window: 5m
"""


@pytest.fixture(scope="module")
def usage_adapter(
    tmp_path_factory: pytest.TempPathFactory, trust: Trust, prometheus: PrometheusProcess
) -> Iterator[Adapter]:
    folder = tmp_path_factory.mktemp("usage")
    with COMPLAINTS.adapter(folder, trust, prometheus, rules=RULES) as running:
        yield running


def test_usage_of_pods_in_all_namespaces_is_one_query_a_resource__openshift_enhancements_1426(
    usage_adapter: Adapter, prometheus: PrometheusProcess
) -> None:
    """`kubectl top pods -A` cost two queries a namespace; in `make e2e`, kubectl and an autoscaler read the API."""
    with usage_adapter.caller() as caller:
        items = caller.get(f"{API}/pods").items
    assert {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in items} == {
        ("shop", "web-0"),
        ("other", "web-0"),
    }
    for series in ("used_cores", "used_bytes"):
        (query,) = {query for query in queries_of(prometheus) if series in query}
        assert not any(namespace in query for namespace in ("shop", "other", "big"))


def test_without_resource_rules_no_usage_is_served_and_no_api_registered__prometheus_adapter_561_310(
    caller: Caller,
) -> None:
    """The API stays metrics-server's; in `tests/e2e/install/test_chart.py` the chart refuses to take it over.

    Discovery answers nevertheless: an APIService that still points here must not become unavailable.
    """
    assert caller.get(API).status == 200
    assert caller.get(f"{API}/namespaces/shop/pods").status == 404
    values = default_values()
    assert (values["rules"]["resource"], values["apiServices"]["resource"]["v1beta1"]) == ({}, "auto")


def test_a_conflict_with_metrics_server_is_reported_with_its_owner__prometheus_adapter_561_310(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    with ObjectApiServer() as cluster:
        metrics_server = replace(SERVICE, namespace="kube-system", name="metrics-server")
        cluster.objects.put(APISERVICES, "", APISERVICE, apiservice(APISERVICE, metrics_server))
        kubeconfig = f"--kubeconfig={cluster.kubeconfig(tmp_path / 'kubeconfig')}"
        lines = run(
            "doctor", kubeconfig, f"--service={SERVICE}", f"--config={tmp_path / 'rules.yaml'}"
        ).out.splitlines()
    (line,) = [line for line in lines if f"owner/{APISERVICE}" in line]
    assert line.startswith("warning: ")
    assert "it belongs to kube-system/metrics-server" in line
