"""A small cluster with its series, which the tests of this folder query; values change every other second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.harnesses import NAMESPACES, PODS, Harness, always, moments, samples
from tests.support.serving import listed, pod

if TYPE_CHECKING:
    from tests.support.harnesses import Course

STEP_SECONDS = 2
_PAST_SECONDS = 60

OPEN_RULE = f"""
- seriesQuery: 'open_connections{{namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
"""
QUEUE_RULE = f"""
- seriesQuery: 'queue_depth{{namespace!=""}}'
  resources: {NAMESPACES}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
"""
RULES = f"""
rules:
{OPEN_RULE}
- seriesQuery: '{{__name__=~"^(odd|twice)$",namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
- seriesQuery: 'never_seen{{namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'max by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
- seriesQuery: 'open_connections{{namespace!="",pod!=""}}'
  name: {{as: refused}}
  resources: {PODS}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}} + on () <<.Series>>{{<<.LabelMatchers>>}}'
externalRules:
{QUEUE_RULE}
- seriesQuery: 'queue_depth{{namespace!=""}}'
  name: {{as: queue_total}}
  resources: {NAMESPACES}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
- seriesQuery: 'queue_never{{namespace!=""}}'
  resources: {NAMESPACES}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
- seriesQuery: 'odd{{namespace!=""}}'
  name: {{as: odd_rows}}
  resources: {NAMESPACES}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
"""
OBJECTS: dict[str, Any] = {
    "pods.json": listed(
        pod("web-0", app="web", edge=""),
        pod("web-1", app="web"),
        pod("web-2", app="web"),
        pod("web-0", namespace="other", app="web"),
        pod("db-0", app="db"),
        pod("idle-0", app="idle"),
    )
}
"""`idle-0` has no series."""


def _counting(offset: float) -> Course:
    """Return the course of a series whose value is the time, ahead by an offset."""
    return lambda moment: moment % 1000 + offset


_CHANGING = {
    'open_connections{namespace="shop",pod="web-0",service="front",instance="a"}': _counting(0.25),
    'open_connections{namespace="shop",pod="web-0",service="front",instance="b"}': _counting(100),
    'open_connections{namespace="shop",pod="web-0",service="back"}': _counting(0.0005),
    'open_connections{namespace="shop",pod="web-1",service="front"}': _counting(1000),
    'open_connections{namespace="shop",pod="web-2",service="back"}': _counting(2000),
    'open_connections{namespace="shop",pod="db-0",service="back"}': _counting(3000),
    'open_connections{namespace="shop",pod="gone-0",service="front"}': _counting(4000),
    'open_connections{namespace="other",pod="web-0",service="front"}': _counting(5000),
    'queue_depth{namespace="shop",queue="orders",shard="1"}': _counting(1),
    'queue_depth{namespace="shop",queue="orders",shard="2"}': _counting(2),
    'queue_depth{namespace="shop",queue="mails",shard="1"}': _counting(30),
    'queue_depth{namespace="other",queue="orders",shard="1"}': _counting(400),
}
_CONSTANT = {
    'odd{namespace="shop",pod="web-0"}': always("NaN"),
    'odd{namespace="shop",pod="web-1"}': always("+Inf"),
    'odd{namespace="shop",pod="web-2"}': always("3"),
    'twice{namespace="shop",pod="web-0",path="/a"}': always("1"),
    'twice{namespace="shop",pod="web-0",path="/b"}': always("2"),
    'twice{namespace="shop",pod="web-1",path="/a"}': always("5"),
}


def _samples_at(now: int) -> list[str]:
    times = moments(now, STEP_SECONDS, _PAST_SECONDS)
    return samples(_CHANGING, times) + samples(_CONSTANT, times[::20])


SHOP = Harness(RULES, OBJECTS, _samples_at)
