"""Two clusters behind one Prometheus: with matchers, no command reads a series of the other one.

A proxy records the queries. Each selector in them has the matchers, whichever command or look-up sent it.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import promql_parser
import pytest

from tests.adapter.commands.nodes.harness import OBJECTS, running_nodes
from tests.adapter.commands.nodes.harness import series_at as series_of_nodes
from tests.recommender.commands.init.series import PODS, history, text_of_now
from tests.recommender.commands.sized_pods import MIB, Exposition, SizedPod
from tests.recommender.configuration.files import entry, whole
from tests.support.fake_apiserver import FakeApiServer
from tests.support.forked import ADAPTER, RECOMMENDER, run
from tests.support.prometheus import scraped_prometheus
from tests.support.recommenders import forked_recommender
from tests.support.recording_proxy import recording_proxy
from tests.support.serving import Trust, eventually, listed, pod, running_adapter
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.recording_proxy import ProxiedRequest, RecordingProxy

OBJECTS_FLAG: Final = "--objects={root}/objects"
MATCHERS: Final = 'cluster="a"'
FLAG: Final = f"--prometheus-matchers={MATCHERS}"
RULES: Final = """\
rules:
- seriesQuery: 'websocket_connections{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {as: connections}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
- seriesQuery: 'http_requests_total{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {as: requests}
  metricsQuery: >-
    sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)
    / on() group_left() count(kube_node_spec_unschedulable)
externalRules:
- seriesQuery: kube_deployment_spec_replicas
  resources: {overrides: {namespace: {resource: namespace}}}
  name: {as: wanted}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (deployment)
resourceRules:
  cpu:
    containerQuery: sum by (<<.GroupBy>>) (rate(container_cpu_usage_seconds_total{<<.LabelMatchers>>}[3m]))
    nodeQuery: sum by (<<.GroupBy>>) (rate(node_cpu_seconds_total{mode!="idle",<<.LabelMatchers>>}[3m]))
    resources: {overrides: {instance: {resource: node}, namespace: {resource: namespace}, pod: {resource: pod}}}
    containerLabel: container
  memory:
    containerQuery: sum by (<<.GroupBy>>) (container_memory_working_set_bytes{<<.LabelMatchers>>})
    nodeQuery: sum by (<<.GroupBy>>) (node_memory_MemTotal_bytes{<<.LabelMatchers>>})
    resources: {overrides: {instance: {resource: node}, namespace: {resource: namespace}, pod: {resource: pod}}}
    containerLabel: container
  window: 3m
"""
SHAPES: Final = """\
apiVersion: tidewatch.io/v1alpha1
kind: MachineShapeCatalogue
shapes: [{name: m, price: 1, template: {cpu: 4, memory: 16Gi, pods: 110}}]
"""
WEB: Final = "{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}"
ENTRIES: Final = (
    entry(
        "load",
        f"targets: [{WEB}]",
        kind=(
            "predictive: {load: sum(websocket_connections), loadPerReplica: 1000, horizon: 2m, model: linear, "
            "history: 1d, freezeUnless: count(kube_node_spec_unschedulable) > 0, "
            "connections: {limit: 2000, metric: websocket_connections}}"
        ),
    ),
    entry(
        "each",
        kind=(
            "predictive: {load: 'sum by (namespace, deployment) (kube_deployment_spec_replicas)', "
            "forEach: {namespace: namespace, name: deployment}, loadPerReplica: 1, horizon: 1m, model: reactive}"
        ),
    ),
    entry(
        "driven", kind="proportional: {drivers: {query: {expr: count(kube_node_spec_unschedulable), perReplica: 4}}}"
    ),
    entry("sizes", kind="resources: {fromUsage: {history: 1d}, forEach: {namespaces: [shop]}}"),
    entry(
        "nodes",
        kind="clusterSize: {nodeGroups: [{name: all, min: 0, max: 99, template: {cpu: 4, memory: 16Gi}, "
        "selector: {pool: web}}]}",
    ),
)


def in_both(text: str) -> str:
    """Return an exporter's text with each series once for each of two clusters."""

    def labelled(line: str, cluster: str) -> str:
        name, braces, rest = line.partition("{")
        if braces:
            return f'{name}{{cluster="{cluster}",{rest}'
        name, _, rest = line.partition(" ")
        return f'{name}{{cluster="{cluster}"}} {rest}'

    lines = text.splitlines()
    return "".join(
        line + "\n" if line.startswith("#") else "".join(f"{labelled(line, cluster)}\n" for cluster in "ab")
        for line in lines
        if line
    )


def sized_pods() -> str:
    found = Exposition(int(time.time()))
    found.add_pod(
        SizedPod(
            "shop", "web-7d9f8b6c5d-x2k4q", ("ReplicaSet", "web-7d9f8b6c5d"), lambda _: 0.2, lambda _: 300.0 * MIB,
            requests={"cpu": 1.0, "memory": 2.0**30},
        )
    )  # fmt: skip
    found.add_replica_set("shop", "web-7d9f8b6c5d", "web")
    return found.text().removesuffix("# EOF\n")


@dataclass(frozen=True, slots=True)
class Harness:
    """Both clusters behind the proxy, and the files of the commands."""

    proxy: RecordingProxy
    root: Path

    @property
    def prometheus(self) -> tuple[str, str]:
        return f"--prometheus-url={self.proxy.url}", FLAG

    @property
    def config(self) -> str:
        return f"--config={self.root}/recommender.yaml"


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    root = tmp_path_factory.mktemp("harness")
    past = sized_pods() + history().removesuffix("# EOF\n")
    # Prometheus scrapes nothing for as long as it has samples of the future.
    present = int(time.time())
    nodes = "\n".join(line for line in series_of_nodes(present) if int(line.rpartition(" ")[2]) < present)
    now = in_both(text_of_now())
    with (
        scraped_prometheus(
            root, now, history=in_both(past) + in_both(nodes) + "# EOF\n", interval="1s", stamped=True
        ) as both,
        recording_proxy(both.url) as proxy,
    ):
        both.wait_for("rate(http_requests_total[2m] offset 1s)")
        made = Harness(proxy, root)
        (root / "rules.yaml").write_text(RULES)
        top = f"pollInterval: 1s\nstate: {root}/state\nprometheus: {{url: '{proxy.url}', matchers: '{MATCHERS}'}}\n"
        (root / "recommender.yaml").write_text(whole(*ENTRIES, top=top))
        (root / "shapes.yaml").write_text(SHAPES)
        (root / "objects").mkdir()
        (root / "objects" / "all.json").write_text(json.dumps(OBJECTS))
        yield made


def selectors_in(node: Any) -> Iterator[promql_parser.VectorSelector]:  # noqa: ANN401 - classes of the parser
    """Yield the selectors of a parsed query, without using any code of the product."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
        return
    for name in ("expr", "param", "lhs", "rhs", "vector_selector"):
        if (inner := getattr(node, name, None)) is not None:
            yield from selectors_in(inner)
    for inner in getattr(node, "args", ()):
        yield from selectors_in(inner)


def is_matched(query: str) -> bool:
    """Return whether there is a selector, and each alternative of each selector has the matcher."""
    found = list(selectors_in(promql_parser.parse(query)))
    alternatives = [each for one in found for each in one.matchers.or_matchers or [one.matchers.matchers]]
    equal = promql_parser.MatchOp.Equal
    return all(any((m.name, m.op, m.value) == ("cluster", equal, "a") for m in each) for each in alternatives)


def unmatched(requests: list[ProxiedRequest]) -> list[str]:
    """Return the queries that read both clusters."""
    found = []
    for request in requests:
        queries = request.all("query") + request.all("match[]")
        if not queries and not request.path.startswith("/api/v1/status/"):
            found.append(f"{request.path} without a selector")
        found += [f"{request.path}: {each}" for each in queries if not is_matched(each)]
    return found


def test_the_check_finds_a_selector_without_the_matchers() -> None:
    assert is_matched('rate(x{cluster="a"}[5m]) / on() sum({cluster="a",__name__="y"}) + time()')
    for query in ('x{cluster="a"} / y', "x", 'x{cluster=~"a"}', 'topk(scalar(x), y{cluster="a"})'):
        assert not is_matched(query)


@pytest.fixture(scope="module")
def cluster() -> Iterator[FakeApiServer]:
    with FakeApiServer() as running:
        yield running


CONFIG: Final = "--config={root}/recommender.yaml"
RULE_FILE: Final = "--config={root}/rules.yaml"
CLUSTER: Final = "--cluster={root}/objects"


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (ADAPTER, f"check {RULE_FILE} --prometheus-url={{url}} {FLAG}"),
        (
            ADAPTER,
            f"explain pods/connections --namespace=shop {RULE_FILE} {OBJECTS_FLAG} --prometheus-url={{url}} {FLAG}",
        ),
        (ADAPTER, f"explain wanted --namespace=shop {RULE_FILE} {OBJECTS_FLAG} --prometheus-url={{url}} {FLAG}"),
        (ADAPTER, f"init --out={{out}} --prometheus-url={{url}} {FLAG}"),
        (ADAPTER, f"doctor {RULE_FILE} --kubeconfig={{kubeconfig}} --prometheus-url={{url}} {FLAG}"),
        (RECOMMENDER, f"init --out={{out}} --prometheus-url={{url}} {FLAG}"),
        (RECOMMENDER, f"sizes --last=1d --prometheus-url={{url}} {FLAG}"),
        (RECOMMENDER, f"recommend --workload=shop/web {CLUSTER} --prometheus-url={{url}} {FLAG}"),
        (RECOMMENDER, f"recommend {CONFIG} {CLUSTER}"),
        (RECOMMENDER, f"recommend {CONFIG} --recommendation=nodes --shapes={{root}}/shapes.yaml --last=1h"),
        (RECOMMENDER, f"backtest {CONFIG} --recommendation=load --last=1h"),
        (RECOMMENDER, f"backtest {CONFIG} --recommendation=load --last=1h --prometheus-url={{url}}/"),
        (RECOMMENDER, f"replay {CONFIG} --last=1h --prometheus-url={{url}}/"),
        (RECOMMENDER, f"doctor {CONFIG} --kubeconfig={{kubeconfig}} --prometheus-url={{url}}"),
    ],
)
def test_a_command_queries_only_one_cluster(
    harness: Harness, cluster: FakeApiServer, tmp_path: Path, program: str, arguments: str
) -> None:
    kubeconfig = cluster.kubeconfig(tmp_path / "kubeconfig")
    places = {"root": harness.root, "out": tmp_path / "out", "kubeconfig": kubeconfig, "url": harness.proxy.url}
    harness.proxy.requests.clear()
    ended = run(*arguments.format(**places).split(), program=program, environment={"no_proxy": "*"})
    assert harness.proxy.requests, ended.out + ended.error
    assert unmatched(harness.proxy.requests) == []


def test_serve_queries_only_one_cluster(harness: Harness, tmp_path: Path) -> None:
    trust = Trust.made_in(tmp_path / "trust")
    objects = {"pods.json": listed(*(pod(name, app="web") for name in PODS)), "nodes.json": OBJECTS}
    harness.proxy.requests.clear()
    with (
        running_adapter(
            tmp_path,
            trust,
            FLAG,
            "--refresh-interval=1s",
            prometheus_url=harness.proxy.url,
            rules=RULES,
            objects=objects,
        ) as adapter,
        adapter.caller() as caller,
    ):
        found = eventually(lambda: answer.values if (answer := caller.pods("connections")).status == 200 else {})
        assert found[PODS[1]] == 900
        assert caller.pods("requests").status == caller.external("wanted").status == 200
        for kind in ("pods", "nodes"):
            caller.get(f"/apis/metrics.k8s.io/v1beta1/{kind}")
        caller.get("/debug/explain", parameters={"metric": "pods/connections", "namespace": "shop"})
        before = len(harness.proxy.requests)
        until(lambda: len(harness.proxy.requests) > before + 5, 60.0)
    paths = {request.path for request in harness.proxy.requests}
    assert {"/api/v1/series", "/api/v1/query"} <= paths
    assert unmatched(harness.proxy.requests) == []


def test_nodes_queries_only_one_cluster(harness: Harness, tmp_path: Path) -> None:
    harness.proxy.requests.clear()
    flags = (f"--prometheus-url={harness.proxy.url}", FLAG, "--refresh-interval=1s")
    with running_nodes(tmp_path, *flags, objects=OBJECTS) as nodes:
        until(lambda: sum(request.path.endswith("query_range") for request in harness.proxy.requests) > 2, 60.0)
        assert nodes.ask("/watcher").status in {200, 503}
    assert unmatched(harness.proxy.requests) == []


def test_run_queries_only_one_cluster(harness: Harness) -> None:
    harness.proxy.requests.clear()
    recommender = forked_recommender(
        harness.root / "run.log",
        "run",
        f"--config={harness.root}/recommender.yaml",
        f"--objects={harness.root}/objects",
        "--dry-run",
    )
    with recommender.process:
        until(lambda: len(recommender.items()) >= len(ENTRIES) - 1, 60.0)
        until(lambda: any(request.path.endswith("query_range") for request in harness.proxy.requests), 60.0)
        before = len(harness.proxy.requests)
        until(lambda: len(harness.proxy.requests) > before + 20, 60.0)
    assert unmatched(harness.proxy.requests) == []
