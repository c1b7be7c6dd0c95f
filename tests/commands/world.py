"""A small cluster with its series, which the tests of this folder ask about.

The samples lie in the past *and in the future*: nothing must be scraped, values change every other second, and what is
right at a moment is known by arithmetic. (Prometheus serves such blocks as any other, and takes no newer samples in
until they are over.)
"""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from demo.machine.prometheus import running_prometheus
from tests.support.prometheus import backfill
from tests.support.serving import listed, pod

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess

STEP_SECONDS = 2
_PAST_SECONDS = 60
_FUTURE_SECONDS = 3600

PODS = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
NAMESPACES = "{overrides: {namespace: {resource: namespace}}}"
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

_CHANGING = {
    'open_connections{namespace="shop",pod="web-0",service="front",instance="a"}': 0.25,
    'open_connections{namespace="shop",pod="web-0",service="front",instance="b"}': 100,
    'open_connections{namespace="shop",pod="web-0",service="back"}': 0.0005,
    'open_connections{namespace="shop",pod="web-1",service="front"}': 1000,
    'open_connections{namespace="shop",pod="web-2",service="back"}': 2000,
    'open_connections{namespace="shop",pod="db-0",service="back"}': 3000,
    'open_connections{namespace="shop",pod="gone-0",service="front"}': 4000,
    'open_connections{namespace="other",pod="web-0",service="front"}': 5000,
    'queue_depth{namespace="shop",queue="orders",shard="1"}': 1,
    'queue_depth{namespace="shop",queue="orders",shard="2"}': 2,
    'queue_depth{namespace="shop",queue="mails",shard="1"}': 30,
    'queue_depth{namespace="other",queue="orders",shard="1"}': 400,
}
"""Series, and what is added to the time."""
_CONSTANT = {
    'odd{namespace="shop",pod="web-0"}': "NaN",
    'odd{namespace="shop",pod="web-1"}': "+Inf",
    'odd{namespace="shop",pod="web-2"}': "3",
    'twice{namespace="shop",pod="web-0",path="/a"}': "1",
    'twice{namespace="shop",pod="web-0",path="/b"}': "2",
    'twice{namespace="shop",pod="web-1",path="/a"}': "5",
}


@contextmanager
def prometheus_of_the_world(folder: Path) -> Iterator[PrometheusProcess]:
    """Run a Prometheus that knows the past and the next hour."""
    backfill(folder, _history(int(time.time())))
    with running_prometheus(folder) as prometheus:
        yield prometheus


def _history(now: int) -> str:
    moments = range(now - now % STEP_SECONDS - _PAST_SECONDS, now + _FUTURE_SECONDS, STEP_SECONDS)
    lines = [
        f"{series} {moment % 1000 + offset} {moment}"
        for series, offset in sorted(_CHANGING.items())
        for moment in moments
    ]
    lines += [f"{series} {value} {moment}" for series, value in sorted(_CONSTANT.items()) for moment in moments[::20]]
    return "\n".join([*lines, "# EOF", ""])


def ask_prometheus(prometheus: PrometheusProcess, query: str, at: float) -> list[tuple[dict[str, str], str]]:
    """Return labels and value, as text, of an instant query, by a way that shares no code with the product."""
    address = f"{prometheus.url}/api/v1/query?{urllib.parse.urlencode({'query': query, 'time': at})}"
    with urllib.request.urlopen(address, timeout=10) as response:
        found = json.load(response)["data"]["result"]
    return [(sample["metric"], sample["value"][1]) for sample in found]
