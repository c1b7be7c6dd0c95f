"""metrics.k8s.io of the real program with a real Prometheus, and with rules as kube-prometheus writes them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from demo.machine.files import replace_file
from tests.adapter.commands.usage_harness import CPU, OTHER_NAMESPACES, RULES, USAGE
from tests.support.forked import run
from tests.support.harnesses import data_queries_counted
from tests.support.serving import Adapter, Trust, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Answer, Caller

API = "/apis/metrics.k8s.io/v1beta1"
SHOP = f"{API}/namespaces/shop/pods"
TABLE = ("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
MAIN_QUERIES = 4
"""One query for each resource of pods, and one for each of nodes."""

Usage = dict[tuple[str, str], dict[str, dict[str, str]]]


@pytest.fixture(scope="module")
def usage_prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusProcess]:
    """Yield a Prometheus that is shared by all tests that leave it alone."""
    with USAGE.prometheus(tmp_path_factory.mktemp("usage-prometheus")) as running:
        yield running


@pytest.fixture(scope="module")
def usage_adapter(
    tmp_path_factory: pytest.TempPathFactory, trust: Trust, usage_prometheus: PrometheusProcess
) -> Iterator[Adapter]:
    folder = tmp_path_factory.mktemp("usage-adapter")
    with USAGE.adapter(folder, trust, usage_prometheus) as running:
        yield running


@pytest.fixture
def caller(usage_adapter: Adapter) -> Iterator[Caller]:
    with usage_adapter.caller() as caller:
        yield caller


def used(answer: Answer) -> Usage:
    """Return what containers use, by namespace and pod."""
    return {
        (item["metadata"]["namespace"], item["metadata"]["name"]): {
            container["name"]: container["usage"] for container in item["containers"]
        }
        for item in answer.items
    }


WEB: Usage = {
    ("shop", "web-0"): {
        "app": {"cpu": "250m", "memory": "100Mi"},
        "proxy": {"cpu": "62m", "memory": "10Mi"},
    },
    ("shop", "web-1"): {"app": {"cpu": "500m", "memory": "200Mi"}, "setup": {"cpu": "125m"}},
}
"""The container `setup` has ended: its memory is gone, and its CPU lingers for the range of the query's rate."""
OTHER: Usage = {("other", "web-0"): {"app": {"cpu": "1500m", "memory": "314572801"}}}
OTHERS: Usage = {(one, "web-0"): {"app": {"cpu": "125m", "memory": "64Mi"}} for one in OTHER_NAMESPACES}


def test_pods_of_a_namespace_have_the_usage_of_each_container(caller: Caller) -> None:
    assert used(caller.get(SHOP)) == WEB


def test_pods_are_selected_by_label_as_an_hpa_requests_them(caller: Caller) -> None:
    answer = caller.get(SHOP, parameters={"labelSelector": "app=web"})
    assert used(answer) == WEB
    first = answer.items[0]
    assert first["metadata"]["labels"] == {"app": "web", "tier": "front"}
    assert first["window"] == "5m0s"


def test_pods_of_all_namespaces_are_in_order(caller: Caller) -> None:
    answer = caller.get(f"{API}/pods")
    assert used(answer) == WEB | OTHER | OTHERS
    keys = list(used(answer))
    assert keys == sorted(keys)


def test_one_pod_is_returned_as_podmetrics(caller: Caller) -> None:
    document = caller.get(f"{SHOP}/web-0").document
    assert (document["kind"], document["apiVersion"]) == ("PodMetrics", "metrics.k8s.io/v1beta1")
    assert document["containers"] == [
        {"name": "app", "usage": {"cpu": "250m", "memory": "100Mi"}},
        {"name": "proxy", "usage": {"cpu": "62m", "memory": "10Mi"}},
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("idle-0", "Prometheus has no sample for it"),
        ("gone-0", "there is no pod of this name"),
        ("odd-0", "'odd-0/app' has no value of cpu: its value is NaN (not a number)"),
        ("db-0", "it has no value of cpu: Prometheus has no sample for it"),
        ("new-0", "'new-0/proxy' has no value of cpu: Prometheus has no sample for it"),
    ],
)
def test_a_pod_without_a_value_is_not_found_and_never_zero(caller: Caller, name: str, why: str) -> None:
    answer = caller.get(f"{SHOP}/{name}")
    assert answer.status == 404
    assert answer.message == f'podmetrics.metrics.k8s.io "shop/{name}" not found: {why}'


def test_nodes_have_their_usage(caller: Caller) -> None:
    answer = caller.get(f"{API}/nodes")
    assert {item["metadata"]["name"]: item["usage"] for item in answer.items} == {
        "n1": {"cpu": "750m", "memory": "3Gi"}
    }
    assert caller.get(f"{API}/nodes/n1").document["usage"] == {"cpu": "750m", "memory": "3Gi"}
    assert [item["metadata"]["name"] for item in caller.get(f"{API}/nodes?labelSelector=zone=a").items] == ["n1"]
    assert caller.get(f"{API}/nodes/n3").status == 404
    half = caller.get(f"{API}/nodes/n2")
    assert (half.status, half.message.partition(": ")[2]) == (
        404,
        "it has no value of memory: Prometheus has no sample for it",
    )


def test_kubectl_gets_a_table(caller: Caller) -> None:
    table = caller.get(SHOP, [TABLE]).document
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
    assert {row["cells"][0]: row["cells"][1:] for row in table["rows"]} == {
        "web-0": ["312m", "110Mi", "5m0s"],
        "web-1": ["625m", "<unknown>", "5m0s"],
    }


def test_more_clients_and_requests_cost_prometheus_no_more_queries(trust: Trust, tmp_path: Path) -> None:
    with (
        USAGE.running(tmp_path, trust) as (prometheus, adapter),
        adapter.caller() as caller,
    ):
        adapter.wait_for("Prometheus answers")
        before, started = data_queries_counted(prometheus, adapter), time.monotonic()
        answers: list[Answer] = []
        plans: dict[tuple[str, str], float] = {}
        while data_queries_counted(prometheus, adapter) < before + 3 * MAIN_QUERIES:
            for namespace in ("shop", "other", *OTHER_NAMESPACES):
                path = f"{API}/namespaces/{namespace}/pods"
                answers += [
                    caller.get(path),
                    caller.get(f"{path}?labelSelector=app%3Dweb"),
                    caller.get(f"{path}/web-0"),
                ]
            answers += [caller.get(f"{API}/pods"), caller.get(f"{API}/nodes"), caller.get(f"{API}/nodes/n1")]
            # What is asked for once a round leaves four rounds later.
            plans = plans_in_use(adapter)
        assert {answer.status for answer in answers} == {200}
        refreshes = time.monotonic() - started + 1
        assert data_queries_counted(prometheus, adapter) - before <= MAIN_QUERIES * refreshes
        assert len(answers) > 5 * (data_queries_counted(prometheus, adapter) - before)
        assert plans == {("resourceRules.cpu", "wide"): 2, ("resourceRules.memory", "wide"): 2}


def plans_in_use(adapter: Adapter) -> dict[tuple[str, str], float]:
    """Return the requests in demand by rule and plan, all of one moment."""
    return {
        (sample.labels["rule"], sample.labels["plan"]): sample.value
        for family in text_string_to_metric_families(adapter.plain("/metrics").text)
        if family.name == "tidewatch_adapter_rule_plan"
        for sample in family.samples
    }


NARROW = """
resourceRules:
  memory:
    containerQuery: |
      <<if .LabelMatchers>>sum by (<<.GroupBy>>) (container_memory_working_set_bytes{<<.LabelMatchers>>})<<end>>
    nodeQuery: sum by (<<.GroupBy>>) (node_memory_MemTotal_bytes{<<.LabelMatchers>>})
    resources:
      overrides: {instance: {resource: node}, namespace: {resource: namespace}, pod: {resource: pod}}
    containerLabel: container
"""


def test_a_query_that_cannot_be_shared_is_sent_for_each_namespace(
    trust: Trust, tmp_path: Path, usage_prometheus: PrometheusProcess
) -> None:
    with (
        USAGE.adapter(tmp_path, trust, usage_prometheus, rules=NARROW) as adapter,
        adapter.caller() as caller,
    ):
        answer = caller.get(f"{API}/pods")
        alone = {
            key: {name: {"memory": usage["memory"]} for name, usage in containers.items() if "memory" in usage}
            for key, containers in (WEB | OTHER | OTHERS).items()
        }
        # A rule for memory alone waits for nothing else.
        alone["shop", "db-0"] = {"db": {"memory": "1Gi"}}
        alone["shop", "new-0"] = {"app": {"memory": "30Mi"}, "proxy": {"memory": "3Mi"}}
        assert used(answer) == alone
        assert used(caller.get(SHOP)) == {key: usage for key, usage in alone.items() if key[0] == "shop"}
        assert adapter.metric("tidewatch_adapter_rule_plan", rule="resourceRules.memory", plan="exact") == 1
        assert {item["metadata"]["name"]: item["usage"] for item in caller.get(f"{API}/nodes").items} == {
            "n1": {"memory": "4Gi"}
        }


def test_answers_age_and_then_fail_after_prometheus_is_killed(trust: Trust, tmp_path: Path) -> None:
    flags = ("--max-answer-age=3s", "--refresh-interval=1s")
    with (
        USAGE.running(tmp_path, trust, *flags) as (prometheus, adapter),
        adapter.caller() as caller,
    ):
        assert used(caller.get(SHOP)) == WEB
        prometheus.kill()
        eventually(lambda: caller.get(SHOP).status != 200)
        answer = caller.get(SHOP)
        assert answer.status == 503
        assert "the last good answer is" in answer.message
        assert caller.get(API).status == 200
        prometheus.start_again()
        # One resource may be there again before the other.
        eventually(lambda: caller.get(SHOP).status == 200 and used(caller.get(SHOP)) == WEB)


def test_a_reload_adds_and_removes_the_api(trust: Trust, tmp_path: Path, usage_prometheus: PrometheusProcess) -> None:
    rules = tmp_path / "rules.yaml"
    without = "rules: []\n"
    with (
        USAGE.adapter(tmp_path, trust, usage_prometheus, rules=without) as adapter,
        adapter.caller() as caller,
    ):
        assert [caller.get(path).status for path in (SHOP, f"{API}/nodes")] == [404, 404]
        replace_file(rules, RULES)
        eventually(lambda: caller.get(SHOP).status == 200)
        assert used(caller.get(SHOP)) == WEB
        replace_file(rules, RULES.replace(CPU, "  cpu: {containerQuerry: x}\n"))
        adapter.wait_for("containerQuerry")
        assert used(caller.get(SHOP)) == WEB, "what held last goes on"
        replace_file(rules, RULES.replace(CPU, ""))
        eventually(lambda: caller.get(f"{SHOP}/web-1").document["containers"][0]["usage"] == {"memory": "200Mi"})
        replace_file(rules, without)
        eventually(lambda: caller.get(SHOP).status == 404)
        assert "no `resourceRules` that are in force" in caller.get(SHOP).message
        # An APIService may still point here: if it were gone, no namespace of the cluster could be deleted.
        assert [caller.get(path).status for path in (API, "/apis/metrics.k8s.io")] == [200, 200]


def test_discovery_lists_nodes_and_pods(caller: Caller) -> None:
    resources: list[dict[str, Any]] = caller.get(API).document["resources"]
    assert {one["name"]: (one["kind"], one["namespaced"], one["verbs"]) for one in resources} == {
        "nodes": ("NodeMetrics", False, ["get", "list"]),
        "pods": ("PodMetrics", True, ["get", "list"]),
    }


def test_check_lists_the_metrics_of_each_rule(tmp_path: Path, usage_prometheus: PrometheusProcess) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(RULES.replace("container_memory_working_set_bytes", "container_memory_nothing"))
    ended = run("check", f"--config={file}", f"--prometheus-url={usage_prometheus.url}", "-o", "json")
    rules = {rule["id"]: rule for rule in json.loads(ended.out)["rules"]}
    cpu, memory = rules["resourceRules.cpu"], rules["resourceRules.memory"]
    assert (cpu["api"], cpu["status"], cpu["plan"]) == ("resource", "ok", "wide")
    assert {metric["name"]: (metric["namespaced"], metric["series"]) for metric in cpu["metrics"]} == {
        "pods/cpu": (True, 8 + len(OTHER_NAMESPACES)),
        "nodes/cpu": (False, 2),
    }
    assert "sum by (namespace,pod,container)" in cpu["metrics"][0]["query"]
    assert [(finding["code"], finding["severity"]) for finding in memory["findings"]] == [("no-series", "warning")]
    assert {metric["name"]: metric["series"] for metric in memory["metrics"]} == {"pods/memory": 0, "nodes/memory": 1}
    assert ended.code == 0
