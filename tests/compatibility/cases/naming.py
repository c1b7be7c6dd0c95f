"""How series give metrics their names: stripped, renamed, filtered, and which series wins if two claim one name."""

from __future__ import annotations

from typing import Final

from tests.compatibility.form import Case, Custom

_PODS = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
_WEB = 'namespace="shop",pod=~"web-0|web-1"'


def _of_pods(*names: str) -> dict[str, bool]:
    """Return what discovery lists for series with a pod and a namespace."""
    return {f"{kind}/{name}": kind == "pods" for name in names for kind in ("pods", "namespaces")}


STRIPPED: Final = Case(
    name="stripped-prefix",
    rules=f"""\
rules:
- seriesQuery: '{{__name__=~"^shopapp_.+",namespace!="",pod!=""}}'
  seriesFilters:
  - isNot: _total$
  resources: {_PODS}
  name: {{matches: ^shopapp_(.*)$, as: ""}}
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
- seriesQuery: '{{__name__=~"^shopapp_.+",namespace!="",pod!=""}}'
  seriesFilters:
  - is: ^shopapp_.*_total$
  - isNot: debug
  resources: {_PODS}
  name: {{matches: ^shopapp_(.*)_total$}}
  metricsQuery: sum(rate(<<.Series>>{{<<.LabelMatchers>>}}[2m])) by (<<.GroupBy>>)
""",
    series="""\
shopapp_carts{namespace="shop",pod="web-0"} 12
shopapp_carts{namespace="shop",pod="web-1"} 7.25
shopapp_orders_total{namespace="shop",pod="web-0"} 0.2505/s
shopapp_debug_total{namespace="shop",pod="web-0"} 1.0005/s
""",
    custom=_of_pods("carts", "orders"),
    asks=(
        Custom(
            path="namespaces/shop/pods/*/carts",
            select="app=web",
            query=f"sum(shopapp_carts{{{_WEB}}}) by (pod)",
            values={"web-0": "12", "web-1": "7250m"},
        ),
        Custom(
            path="namespaces/shop/pods/*/orders",
            select="app=web",
            query=f"sum(rate(shopapp_orders_total{{{_WEB}}}[2m])) by (pod)",
            values={"web-0": "250m"},
        ),
        Custom(path="namespaces/shop/pods/*/debug", select="app=web", status=404),
    ),
)

TWO_GROUPS: Final = Case(
    name="two-groups-in-a-name",
    rules=f"""\
rules:
- seriesQuery: '{{__name__=~"^queue_.*_(depth|lag)$",pod!=""}}'
  resources: {_PODS}
  name: {{matches: "^queue_(.*)_(depth|lag)$", as: "${{2}}_of_$1"}}
  metricsQuery: max(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
""",
    series="""\
queue_orders_depth{namespace="shop",pod="web-0",shard="1"} 3
queue_orders_depth{namespace="shop",pod="web-0",shard="2"} 8
queue_orders_lag{namespace="shop",pod="web-0"} 0.5
""",
    custom=_of_pods("depth_of_orders", "lag_of_orders"),
    asks=(
        Custom(
            path="namespaces/shop/pods/*/depth_of_orders",
            select="app=web",
            query=f"max(queue_orders_depth{{{_WEB}}}) by (pod)",
            values={"web-0": "8"},
        ),
        Custom(
            path="namespaces/shop/pods/web-0/lag_of_orders",
            query='max(queue_orders_lag{namespace="shop",pod="web-0"}) by (pod)',
            values={"web-0": "500m"},
        ),
    ),
)

RECORDED: Final = Case(
    name="recording-rules",
    rules=f"""\
rules:
- seriesQuery: '{{__name__=~"^pod:.+:rate[0-9]+m$",namespace!=""}}'
  resources: {_PODS}
  name: {{matches: "^pod:(.+):rate[0-9]+m$", as: "$1"}}
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
- seriesQuery: 'namespace:latency_seconds:p99{{namespace!=""}}'
  resources: {_PODS}
  metricsQuery: max(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
""",
    series="""\
pod:grpc_calls:rate5m{namespace="shop",pod="web-0"} 41.125
namespace:latency_seconds:p99{namespace="shop"} 0.375
namespace:latency_seconds:p99{namespace="other"} 4
""",
    custom={
        **_of_pods("grpc_calls"),
        "namespaces/namespace:latency_seconds:p99": False,
        "pods/namespace:latency_seconds:p99": True,
    },
    unseen=frozenset({"pods/namespace:latency_seconds:p99"}),
    asks=(
        Custom(
            path="namespaces/shop/pods/*/grpc_calls",
            select="app=web",
            query=f"sum(pod:grpc_calls:rate5m{{{_WEB}}}) by (pod)",
            values={"web-0": "41125m"},
        ),
        Custom(
            path="namespaces/shop/metrics/namespace:latency_seconds:p99",
            query='max(namespace:latency_seconds:p99{namespace="shop"}) by (namespace)',
            label="namespace",
            values={"shop": "375m"},
        ),
        Custom(
            path="namespaces/*/metrics/namespace:latency_seconds:p99",
            select="team",
            query='max(namespace:latency_seconds:p99{namespace=~"shop|other"}) by (namespace)',
            label="namespace",
            values={"other": "4", "shop": "375m"},
        ),
    ),
)

LAST_RULE: Final = Case(
    name="last-rule-wins",
    rules=f"""\
rules:
- seriesQuery: 'sessions_first{{pod!=""}}'
  resources: {_PODS}
  name: {{as: open_sessions}}
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
- seriesQuery: 'sessions_second{{pod!=""}}'
  resources: {_PODS}
  name: {{as: open_sessions}}
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
- seriesQuery: 'sessions_never{{pod!=""}}'
  resources: {_PODS}
  name: {{as: open_sessions}}
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
""",
    series="""\
sessions_first{namespace="shop",pod="web-0"} 1
sessions_second{namespace="shop",pod="web-0"} 2
""",
    custom=_of_pods("open_sessions"),
    asks=(
        Custom(
            path="namespaces/shop/pods/web-0/open_sessions",
            query='sum(sessions_second{namespace="shop",pod="web-0"}) by (pod)',
            values={"web-0": "2"},
        ),
    ),
)

NEVER_SEEN: Final = Case(
    name="never-seen",
    rules=f"""\
rules:
- seriesQuery: 'uploads_waiting{{namespace!="",pod!=""}}'
  resources: {_PODS}
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
- seriesQuery: '{{__name__=~"^never_.*",namespace!="",pod!=""}}'
  resources: {_PODS}
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
""",
    series="",
    custom=_of_pods("uploads_waiting"),
    unseen=frozenset(_of_pods("uploads_waiting")),
    asks=(
        Custom(path="namespaces/shop/pods/*/uploads_waiting", select="app=web", status=200, status_before=404),
        Custom(path="namespaces/shop/pods/*/never_seen", select="app=web", status=404),
    ),
)

CASES: Final = (STRIPPED, TWO_GROUPS, RECORDED, LAST_RULE, NEVER_SEEN)
