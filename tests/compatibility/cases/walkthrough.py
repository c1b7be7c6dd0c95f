"""The kind of rule that prometheus-adapter's walkthrough arrives at, and every way to ask for its metric."""

from __future__ import annotations

from typing import Final

from tests.compatibility.form import Case, Custom

_RULES = """\
rules:
- seriesQuery: 'http_requests_total{namespace!="",pod!=""}'
  resources:
    overrides:
      namespace: {resource: namespace}
      pod: {resource: pod}
  name:
    matches: "^(.*)_total$"
    as: "${1}_per_second"
  metricsQuery: 'sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)'
"""

_SERIES = """\
http_requests_total{namespace="shop",pod="web-0",verb="GET",code="200"} 2.5002/s
http_requests_total{namespace="shop",pod="web-0",verb="POST",code="200"} 1.0003/s
http_requests_total{namespace="shop",pod="web-1",verb="GET",code="200"} 4.0001/s
http_requests_total{namespace="shop",pod="web-1",verb="GET"} 0.5004/s
http_requests_total{namespace="shop",pod="db-0",verb="GET",code="500"} 7.0005/s
http_requests_total{namespace="shop",pod="gone-0",verb="GET",code="200"} 1000.0006/s
http_requests_total{namespace="other",pod="web-0",verb="GET",code="200"} 9.0005/s
"""
"""The pod `gone-0` no longer exists, and its counter still rises."""

_PODS = "namespaces/shop/pods/*/http_requests_per_second"
_WEB = 'namespace="shop",pod=~"web-0|web-1"'


def _query(matchers: str, by: str = "pod") -> str:
    return f"sum(rate(http_requests_total{{{matchers}}}[2m])) by ({by})"


def _by_metric_selector(metrics: str, matchers: str, values: dict[str, str]) -> Custom:
    return Custom(path=_PODS, select="app=web", metrics=metrics, query=_query(f"{matchers},{_WEB}"), values=values)


WALKTHROUGH: Final = Case(
    name="walkthrough",
    rules=_RULES,
    series=_SERIES,
    custom={"pods/http_requests_per_second": True, "namespaces/http_requests_per_second": False},
    asks=(
        # 2.5002 + 1.0003; 4.0001 + 0.5004
        Custom(path=_PODS, select="app=web", query=_query(_WEB), values={"web-0": "3500m", "web-1": "4500m"}),
        Custom(
            path=_PODS,
            select="app notin (idle,db)",
            query=_query(_WEB),
            values={"web-0": "3500m", "web-1": "4500m"},
        ),
        Custom(
            path=_PODS,
            query=_query('namespace="shop",pod=~"web-0|web-1|db-0|idle-0"'),
            values={"db-0": "7", "web-0": "3500m", "web-1": "4500m"},
        ),
        _by_metric_selector("verb=GET", 'verb="GET"', {"web-0": "2500m", "web-1": "4500m"}),
        _by_metric_selector("verb==POST", 'verb="POST"', {"web-0": "1"}),
        _by_metric_selector("verb in (POST)", 'verb=~"POST"', {"web-0": "1"}),
        _by_metric_selector("verb in (GET,POST)", 'verb=~"GET|POST"', {"web-0": "3500m", "web-1": "4500m"}),
        _by_metric_selector("verb notin (GET)", 'verb!~"GET"', {"web-0": "1"}),
        _by_metric_selector("verb notin (POST,PUT)", 'verb!~"POST|PUT"', {"web-0": "2500m", "web-1": "4500m"}),
        _by_metric_selector("code", 'code!=""', {"web-0": "3500m", "web-1": "4"}),
        _by_metric_selector("!code", 'code=""', {"web-1": "500m"}),
        _by_metric_selector("verb in (G.T)", 'verb=~"G.T"', {"web-0": "2500m", "web-1": "4500m"}),
        _by_metric_selector("verb=GET,code=200", 'code="200",verb="GET"', {"web-0": "2500m", "web-1": "4"}),
        # prometheus-adapter sends this one, and fails when it writes its answer: 500.
        _by_metric_selector("verb!=GET", 'verb!="GET"', {"web-0": "1"}),
        Custom(
            path="namespaces/shop/pods/web-1/http_requests_per_second",
            query=_query('namespace="shop",pod="web-1"'),
            values={"web-1": "4500m"},
        ),
        Custom(
            path="namespaces/other/pods/*/http_requests_per_second",
            select="app=web",
            query=_query('namespace="other",pod="web-0"'),
            values={"web-0": "9"},
        ),
        # 3.5005 + 4.5005 + 7.0005 + 1000.0006
        Custom(
            path="namespaces/shop/metrics/http_requests_per_second",
            query=_query('namespace="shop"', "namespace"),
            label="namespace",
            values={"shop": "1015002m"},
        ),
        Custom(
            path="namespaces/other/metrics/http_requests_per_second",
            metrics="verb=GET",
            query=_query('verb="GET",namespace="other"', "namespace"),
            label="namespace",
            values={"other": "9"},
        ),
        Custom(path=_PODS, select="app=idle", query=_query('namespace="shop",pod="idle-0"')),
        Custom(
            path="namespaces/shop/pods/idle-0/http_requests_per_second",
            status=404,
            query=_query('namespace="shop",pod="idle-0"'),
            message="the server could not find the metric http_requests_per_second for pods idle-0",
        ),
        Custom(
            path=_PODS,
            select="app=nobody",
            status=404,
            message="the server could not find the metric http_requests_per_second for pods",
        ),
        Custom(
            path="namespaces/shop/pods/*/http_requests_total",
            select="app=web",
            status=404,
            message="the server could not find the metric http_requests_total for pods",
        ),
        Custom(path=_PODS, select="app=web", metrics="code>200", status=400),
        Custom(path=_PODS, select="app==web,,", status=400, message="unable to parse"),
        Custom(path=_PODS, select="app=web", metrics="verb in GET", status=400, message="unable to parse"),
    ),
)
