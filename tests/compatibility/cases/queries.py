"""Queries of every shape: joins, ratios of two series, quantiles, subqueries, defaults."""

from __future__ import annotations

from typing import Final

from tests.compatibility.form import Case, Custom, External

_PODS = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
_NAMESPACE = "{overrides: {namespace: {resource: namespace}}}"
_WEB = 'namespace="shop",pod=~"web-0|web-1"'


def _of_pods(name: str) -> dict[str, bool]:
    return {f"pods/{name}": True, f"namespaces/{name}": False}


JOINED: Final = Case(
    name="joins",
    rules=f"""\
rules:
- seriesQuery: 'players_online{{namespace!="",pod!=""}}'
  resources: {_PODS}
  name: {{as: players_weighted}}
  metricsQuery: >-
    sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
    * on (<<.GroupBy>>) group_left () max(player_weight{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
- seriesQuery: 'players_online{{namespace!="",pod!=""}}'
  resources: {_PODS}
  name: {{as: players_scaled}}
  metricsQuery: >-
    sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>) * on () group_left () max(season_factor)
""",
    series="""\
players_online{namespace="shop",pod="web-0",arena="x"} 10
players_online{namespace="shop",pod="web-0",arena="y"} 11
players_online{namespace="shop",pod="web-1",arena="x"} 20
player_weight{namespace="shop",pod="web-0"} 1.5
player_weight{namespace="other",pod="web-1"} 3
season_factor 0.5
""",
    custom=_of_pods("players_weighted") | _of_pods("players_scaled"),
    asks=(
        Custom(
            path="namespaces/shop/pods/*/players_weighted",
            select="app=web",
            query=f"sum(players_online{{{_WEB}}}) by (pod)"
            f" * on (pod) group_left () max(player_weight{{{_WEB}}}) by (pod)",
            values={"web-0": "31500m"},
        ),
        Custom(
            path="namespaces/shop/pods/*/players_scaled",
            select="app=web",
            query=f"sum(players_online{{{_WEB}}}) by (pod) * on () group_left () max(season_factor)",
            values={"web-0": "10500m", "web-1": "10"},
        ),
    ),
)

RATIO: Final = Case(
    name="ratio-of-two-series",
    rules=f"""\
rules:
- seriesQuery: 'calls_failed_total{{namespace!="",pod!=""}}'
  resources: {_PODS}
  name: {{matches: ^calls_failed_total$, as: calls_failed_ratio}}
  metricsQuery: >-
    sum(rate(<<.Series>>{{<<.LabelMatchers>>}}[2m])) by (<<.GroupBy>>)
    / sum(rate(calls_total{{<<.LabelMatchers>>}}[2m])) by (<<.GroupBy>>)
""",
    series="""\
calls_failed_total{namespace="shop",pod="web-0",code="500"} 1.25/s
calls_failed_total{namespace="shop",pod="web-0",code="503"} 0.75/s
calls_failed_total{namespace="shop",pod="db-0",code="500"} 0/s
calls_total{namespace="shop",pod="web-0"} 32/s
calls_total{namespace="shop",pod="web-1"} 8/s
calls_total{namespace="shop",pod="db-0"} 0/s
""",
    custom=_of_pods("calls_failed_ratio"),
    asks=(
        # 2 / 32 = 0.0625; web-1 has no failures to divide.
        Custom(
            path="namespaces/shop/pods/*/calls_failed_ratio",
            select="app=web",
            query=f"sum(rate(calls_failed_total{{{_WEB}}}[2m])) by (pod)"
            f" / sum(rate(calls_total{{{_WEB}}}[2m])) by (pod)",
            values={"web-0": "62m"},
        ),
        # 0 / 0 is NaN: a 0 there, a failure here.
        Custom(path="namespaces/shop/pods/db-0/calls_failed_ratio", status=404),
    ),
)

QUANTILE: Final = Case(
    name="histogram-quantile",
    rules=f"""\
rules:
- seriesQuery: 'reply_seconds_bucket{{namespace!="",pod!=""}}'
  resources: {_PODS}
  name: {{matches: ^(.*)_seconds_bucket$, as: "${{1}}_p95"}}
  metricsQuery: 'histogram_quantile(0.95, sum(rate(<<.Series>>{{<<.LabelMatchers>>}}[2m])) by (le, <<.GroupBy>>))'
""",
    series="""\
reply_seconds_bucket{namespace="shop",pod="web-0",le="0.1"} 8/s
reply_seconds_bucket{namespace="shop",pod="web-0",le="0.5"} 9/s
reply_seconds_bucket{namespace="shop",pod="web-0",le="1"} 11/s
reply_seconds_bucket{namespace="shop",pod="web-0",le="+Inf"} 11/s
""",
    custom=_of_pods("reply_p95"),
    asks=(
        # 0.95 x 11 = 10.45 lies between 9 and 11: 0.5 + (1 - 0.5) x 1.45 / 2 = 0.8625
        Custom(
            path="namespaces/shop/pods/*/reply_p95",
            select="app=web",
            query=f"histogram_quantile(0.95, sum(rate(reply_seconds_bucket{{{_WEB}}}[2m])) by (le, pod))",
            values={"web-0": "862m"},
        ),
    ),
)

SUBQUERY: Final = Case(
    name="subqueries",
    rules=f"""\
rules:
- seriesQuery: 'cache_entries{{namespace!="",pod!=""}}'
  resources: {_PODS}
  name: {{as: cache_entries_peak}}
  metricsQuery: 'max_over_time(sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)[3m:30s])'
- seriesQuery: 'cache_misses_total{{namespace!="",pod!=""}}'
  resources: {_PODS}
  name: {{as: cache_misses_usual}}
  metricsQuery: >-
    avg_over_time(sum(rate(<<.Series>>{{<<.LabelMatchers>>}}[1m])) by (<<.GroupBy>>)[2m:1m])
""",
    series="""\
cache_entries{namespace="shop",pod="web-0",zone="a"} 1500
cache_entries{namespace="shop",pod="web-0",zone="b"} 2500
cache_misses_total{namespace="shop",pod="web-0"} 6.5005/s
""",
    custom=_of_pods("cache_entries_peak") | _of_pods("cache_misses_usual"),
    asks=(
        Custom(
            path="namespaces/shop/pods/*/cache_entries_peak",
            select="app=web",
            query=f"max_over_time(sum(cache_entries{{{_WEB}}}) by (pod)[3m:30s])",
            values={"web-0": "4k"},
        ),
        Custom(
            path="namespaces/shop/pods/web-0/cache_misses_usual",
            query='avg_over_time(sum(rate(cache_misses_total{namespace="shop",pod="web-0"}[1m])) by (pod)[2m:1m])',
            values={"web-0": "6500m"},
        ),
    ),
)

DEFAULTED: Final = Case(
    name="or-with-defaults",
    rules=f"""\
rules:
- seriesQuery: 'tasks_running{{namespace!="",pod!=""}}'
  resources: {_PODS}
  metricsQuery: >-
    sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
    or sum(tasks_planned{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
- seriesQuery: 'tasks_done{{namespace!="",pod!=""}}'
  resources: {_PODS}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>) or on () vector(0)'
externalRules:
- seriesQuery: 'tasks_waiting{{namespace!=""}}'
  resources: {_NAMESPACE}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}}) or vector(0)'
""",
    series="""\
tasks_running{namespace="shop",pod="web-0"} 3
tasks_planned{namespace="shop",pod="web-0"} 50
tasks_planned{namespace="shop",pod="web-1"} 60
tasks_done{namespace="shop",pod="web-0"} 9
tasks_waiting{namespace="shop",queue="a"} 70
tasks_waiting{namespace="shop",queue="b"} 80
""",
    custom=_of_pods("tasks_running") | _of_pods("tasks_done"),
    external=frozenset({"tasks_waiting"}),
    asks=(
        Custom(
            path="namespaces/shop/pods/*/tasks_running",
            select="app=web",
            query=f"sum(tasks_running{{{_WEB}}}) by (pod) or sum(tasks_planned{{{_WEB}}}) by (pod)",
            values={"web-0": "3", "web-1": "60"},
        ),
        Custom(
            path="namespaces/shop/pods/*/tasks_done",
            select="app=web",
            query=f"sum(tasks_done{{{_WEB}}}) by (pod) or on () vector(0)",
            values={"web-0": "9"},
        ),
        # The default's sample names no pod, so it is the value of no pod: an empty list, not a 0.
        Custom(
            path="namespaces/shop/pods/*/tasks_done",
            select="app=idle",
            query='sum(tasks_done{namespace="shop",pod="idle-0"}) by (pod) or on () vector(0)',
        ),
        External(
            path="shop/tasks_waiting",
            query='sum(tasks_waiting{namespace="shop"}) or vector(0)',
            rows=(({}, "150"),),
        ),
        External(
            path="shop/tasks_waiting",
            select="queue in (b,c)",
            query='sum(tasks_waiting{queue=~"b|c",namespace="shop"}) or vector(0)',
            rows=(({}, "80"),),
        ),
        External(
            path="other/tasks_waiting",
            query='sum(tasks_waiting{namespace="other"}) or vector(0)',
            rows=(({}, "0"),),
        ),
    ),
)

CASES: Final = (JOINED, RATIO, QUANTILE, SUBQUERY, DEFAULTED)
