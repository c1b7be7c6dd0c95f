"""Resource rules of the kind that prometheus-adapter's chart and kube-prometheus install: what `kubectl top` shows."""

from __future__ import annotations

from typing import Final

from tests.compatibility.form import Case, Usage

_OVERRIDES = """\
      overrides:
        node: {resource: node}
        namespace: {resource: namespace}
        pod: {resource: pod}
"""
_SHOP = 'namespace="shop",pod=~"web-0|web-1|db-0|idle-0"'
_NODES = 'node=~"n1|n2"'


def _cpu(matchers: str) -> str:
    return f'sum by (pod,container) (rate(container_cpu_usage_seconds_total{{container!="",{matchers}}}[3m]))'


def _memory(matchers: str) -> str:
    return f'sum by (pod,container) (container_memory_working_set_bytes{{container!="",{matchers}}})'


_WEB_0 = {"app": {"cpu": "250m", "memory": "50Mi"}, "proxy": {"cpu": "10m", "memory": "1048577"}}
_LEFT_OUT = {
    "db-0": {"db": {"cpu": "2"}},
    "web-1": {"app": {"cpu": "40m", "memory": "20Mi"}, "proxy": {"memory": "2Mi"}},
}
"""prometheus-adapter leaves db-0 out, too; for web-1's proxy, it reports that it uses no CPU."""

RESOURCES: Final = Case(
    name="resource-rules",
    rules=f"""\
resourceRules:
  cpu:
    containerQuery: >-
      sum by (<<.GroupBy>>) (rate(container_cpu_usage_seconds_total{{container!="",<<.LabelMatchers>>}}[3m]))
    nodeQuery: >-
      sum by (<<.GroupBy>>) (rate(node_cpu_seconds_total{{mode!="idle",mode!="iowait",<<.LabelMatchers>>}}[3m]))
    resources:
{_OVERRIDES}\
    containerLabel: container
  memory:
    containerQuery: sum by (<<.GroupBy>>) (container_memory_working_set_bytes{{container!="",<<.LabelMatchers>>}})
    nodeQuery: >-
      sum by (<<.GroupBy>>) (node_memory_MemTotal_bytes{{<<.LabelMatchers>>}}
      - node_memory_MemAvailable_bytes{{<<.LabelMatchers>>}})
    resources:
{_OVERRIDES}\
    containerLabel: container
  window: 3m
""",
    series="""\
container_cpu_usage_seconds_total{namespace="shop",pod="web-0",container="app",cpu="0"} 0.1502/s
container_cpu_usage_seconds_total{namespace="shop",pod="web-0",container="app",cpu="1"} 0.1003/s
container_cpu_usage_seconds_total{namespace="shop",pod="web-0",container="proxy",cpu="0"} 0.0105/s
container_cpu_usage_seconds_total{namespace="shop",pod="web-0",cpu="0"} 0.2705/s
container_cpu_usage_seconds_total{namespace="shop",pod="web-1",container="app",cpu="0"} 0.0405/s
container_cpu_usage_seconds_total{namespace="shop",pod="db-0",container="db",cpu="0"} 2.0005/s
container_cpu_usage_seconds_total{namespace="shop",pod="gone-0",container="app",cpu="0"} 7.0005/s
container_cpu_usage_seconds_total{namespace="other",pod="web-0",container="app",cpu="0"} 4.0005/s
container_cpu_usage_seconds_total{namespace="other",pod="web-0",container="setup",cpu="0"} 0.0305/s
container_memory_working_set_bytes{namespace="shop",pod="web-0",container="app"} 52428800
container_memory_working_set_bytes{namespace="shop",pod="web-0",container="proxy"} 1048577
container_memory_working_set_bytes{namespace="shop",pod="web-1",container="app"} 20971520
container_memory_working_set_bytes{namespace="shop",pod="web-1",container="proxy"} 2097152
container_memory_working_set_bytes{namespace="shop",pod="web-0"} 60000000
container_memory_working_set_bytes{namespace="other",pod="web-0",container="app"} 1073741824
node_cpu_seconds_total{node="n1",mode="user",cpu="0"} 0.5002/s
node_cpu_seconds_total{node="n1",mode="system",cpu="0"} 0.2503/s
node_cpu_seconds_total{node="n1",mode="idle",cpu="0"} 0.2495/s
node_cpu_seconds_total{node="n2",mode="user",cpu="0"} 0.1255/s
node_memory_MemTotal_bytes{node="n1"} 8589934592
node_memory_MemTotal_bytes{node="n2"} 8589934592
node_memory_MemAvailable_bytes{node="n1"} 5368709120
node_memory_MemAvailable_bytes{node="n2"} 8589934591
""",
    asks=(
        Usage(
            path="namespaces/shop/pods",
            cpu=_cpu(_SHOP),
            memory=_memory(_SHOP),
            used={"web-0": _WEB_0},
            left_out=_LEFT_OUT,
        ),
        Usage(path="namespaces/shop/pods", select="app=web", used={"web-0": _WEB_0}),
        Usage(
            path="namespaces/other/pods",
            cpu=_cpu('namespace="other",pod="web-0"'),
            memory=_memory('namespace="other",pod="web-0"'),
            # The container setup has ended: prometheus-adapter says that it has a memory of 0.
            used={"web-0": {"app": {"cpu": "4", "memory": "1Gi"}, "setup": {"cpu": "30m"}}},
        ),
        Usage(path="namespaces/shop/pods", select="app=idle", used={}),
        Usage(
            path="nodes",
            labels=("node",),
            cpu=f'sum by (node) (rate(node_cpu_seconds_total{{mode!="idle",mode!="iowait",{_NODES}}}[3m]))',
            memory="sum by (node) "
            f"(node_memory_MemTotal_bytes{{{_NODES}}} - node_memory_MemAvailable_bytes{{{_NODES}}})",
            used={"n1": {"": {"cpu": "750m", "memory": "3Gi"}}, "n2": {"": {"cpu": "125m", "memory": "1"}}},
        ),
    ),
)
