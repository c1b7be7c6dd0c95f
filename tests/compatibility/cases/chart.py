"""The six rules that prometheus-adapter's Helm chart installs by default.

The last three take every series that has a namespace, and every label that is called like a kind of object.
"""

from __future__ import annotations

from typing import Final

from tests.compatibility.form import Case, Custom

_CONTAINERS = """\
- seriesQuery: '{__name__=~"^container_.*",container!="POD",namespace!="",pod!=""}'
  resources:
    overrides:
      namespace: {resource: namespace}
      pod: {resource: pod}
"""
_OTHERS = """\
- seriesQuery: '{namespace!="",__name__!~"^container_.*"}'
  resources: {template: <<.Resource>>}
"""
_RULES = f"""\
rules:
{_CONTAINERS}\
  seriesFilters: []
  name: {{matches: ^container_(.*)_seconds_total$, as: ""}}
  metricsQuery: sum(rate(<<.Series>>{{<<.LabelMatchers>>,container!="POD"}}[5m])) by (<<.GroupBy>>)
{_CONTAINERS}\
  seriesFilters: [{{isNot: ^container_.*_seconds_total$}}]
  name: {{matches: ^container_(.*)_total$, as: ""}}
  metricsQuery: sum(rate(<<.Series>>{{<<.LabelMatchers>>,container!="POD"}}[5m])) by (<<.GroupBy>>)
{_CONTAINERS}\
  seriesFilters: [{{isNot: ^container_.*_total$}}]
  name: {{matches: ^container_(.*)$, as: ""}}
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>,container!="POD"}}) by (<<.GroupBy>>)
{_OTHERS}\
  seriesFilters: [{{isNot: .*_total$}}]
  name: {{matches: "", as: ""}}
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
{_OTHERS}\
  seriesFilters: [{{isNot: .*_seconds_total}}]
  name: {{matches: ^(.*)_total$, as: ""}}
  metricsQuery: sum(rate(<<.Series>>{{<<.LabelMatchers>>}}[5m])) by (<<.GroupBy>>)
{_OTHERS}\
  seriesFilters: []
  name: {{matches: ^(.*)_seconds_total$, as: ""}}
  metricsQuery: sum(rate(<<.Series>>{{<<.LabelMatchers>>}}[5m])) by (<<.GroupBy>>)
"""

_SERIES = """\
container_cpu_usage_seconds_total{namespace="shop",pod="web-0",container="app",cpu="total"} 0.2502/s
container_cpu_usage_seconds_total{namespace="shop",pod="web-0",container="proxy",cpu="total"} 0.1003/s
container_cpu_usage_seconds_total{namespace="shop",pod="web-0",container="POD",cpu="total"} 5.0005/s
container_cpu_usage_seconds_total{namespace="shop",pod="web-1",container="app",cpu="total"} 1.5005/s
container_cpu_usage_seconds_total{id="/",node="n1"} 9.0005/s
container_network_receive_bytes_total{namespace="shop",pod="web-0",container="app",interface="eth0"} 123456.0005/s
container_memory_working_set_bytes{namespace="shop",pod="web-0",container="app"} 52428800
container_memory_working_set_bytes{namespace="shop",pod="web-0",container="proxy"} 1e+06
http_requests_in_flight{namespace="shop",pod="web-0",service="front",job="shop-web",instance="10.0.0.1:80"} 4
http_requests_in_flight{namespace="shop",pod="web-1",service="front",job="shop-web",instance="10.0.0.2:80"} 2
http_requests_total{namespace="shop",pod="web-0",service="front",job="shop-web",code="200"} 33.0005/s
http_requests_total{namespace="shop",pod="web-0",service="front",job="shop-web",code="500"} 0.5003/s
process_cpu_seconds_total{namespace="shop",pod="web-0",node="n1"} 0.7505/s
process_start_time_seconds{namespace="other",pod="web-0"} 1.75e+09
up{namespace="",job="prometheus"} 1
"""

_POD = frozenset({"pods", "namespaces"})
_SERVED: Final = {
    "cpu_usage": _POD,
    "network_receive_bytes": _POD,
    "memory_working_set_bytes": _POD,
    "http_requests_in_flight": _POD | {"services", "jobs.batch"},
    "http_requests": _POD | {"services", "jobs.batch"},
    "process_cpu": _POD | {"nodes"},
    "process_start_time_seconds": _POD,
}
_IN_NO_NAMESPACE = {"namespaces", "nodes"}

CHART: Final = Case(
    name="default-rules",
    rules=_RULES,
    series=_SERIES,
    custom={f"{kind}/{name}": kind not in _IN_NO_NAMESPACE for name, kinds in _SERVED.items() for kind in kinds},
    asks=(
        Custom(
            path="namespaces/shop/pods/*/cpu_usage",
            select="app=web",
            query="sum(rate(container_cpu_usage_seconds_total"
            '{namespace="shop",pod=~"web-0|web-1",container!="POD"}[5m])) by (pod)',
            values={"web-0": "350m", "web-1": "1500m"},
        ),
        Custom(
            path="namespaces/shop/pods/*/cpu_usage",
            select="app=web",
            metrics="container in (app)",
            query="sum(rate(container_cpu_usage_seconds_total"
            '{container=~"app",namespace="shop",pod=~"web-0|web-1",container!="POD"}[5m])) by (pod)',
            values={"web-0": "250m", "web-1": "1500m"},
        ),
        Custom(
            path="namespaces/shop/pods/web-0/network_receive_bytes",
            query="sum(rate(container_network_receive_bytes_total"
            '{namespace="shop",pod="web-0",container!="POD"}[5m])) by (pod)',
            values={"web-0": "123456"},
        ),
        Custom(
            path="namespaces/shop/pods/*/memory_working_set_bytes",
            select="app=web",
            query="sum(container_memory_working_set_bytes"
            '{namespace="shop",pod=~"web-0|web-1",container!="POD"}) by (pod)',
            values={"web-0": "53428800"},
        ),
        Custom(
            path="namespaces/shop/services/front/http_requests_in_flight",
            query='sum(http_requests_in_flight{namespace="shop",service="front"}) by (service)',
            label="service",
            values={"front": "6"},
        ),
        Custom(
            path="namespaces/shop/jobs.batch/shop-web/http_requests_in_flight",
            query='sum(http_requests_in_flight{namespace="shop",job="shop-web"}) by (job)',
            label="job",
            values={"shop-web": "6"},
        ),
        # 33.0005 + 0.5003
        Custom(
            path="namespaces/shop/services/front/http_requests",
            query='sum(rate(http_requests_total{namespace="shop",service="front"}[5m])) by (service)',
            label="service",
            values={"front": "33500m"},
        ),
        Custom(
            path="namespaces/shop/metrics/http_requests",
            metrics="code notin (200)",
            query='sum(rate(http_requests_total{code!~"200",namespace="shop"}[5m])) by (namespace)',
            label="namespace",
            values={"shop": "500m"},
        ),
        Custom(
            path="nodes/n1/process_cpu",
            query='sum(rate(process_cpu_seconds_total{node="n1"}[5m])) by (node)',
            label="node",
            values={"n1": "750m"},
        ),
        Custom(
            path="namespaces/other/pods/*/process_start_time_seconds",
            query='sum(process_start_time_seconds{namespace="other",pod="web-0"}) by (pod)',
            values={"web-0": "1750M"},
        ),
        Custom(path="namespaces/shop/pods/*/up", status=404),
    ),
)
