"""The harness in which complaints are tested: a small shop, one namespace with 1,500 pods, and good and bad rules.

Samples are backfilled for the past and the next hour, so that nothing must be scraped; each value is constant.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.support.harnesses import NAMESPACES, PODS, Harness, always, moments, samples
from tests.support.serving import listed, pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.harnesses import Course

STEP_SECONDS = 30
SHORT_LOOK_BACK = "--prometheus-look-back=1s"
"""With this flag, a rule's value for no data need not wait for five minutes after each start of a Prometheus."""
_PAST_SECONDS = 90

MANY = 1500
"""Pods of the namespace `big`: so many made a query too long for VictoriaMetrics."""
BIG = [f"checkout-frontend-7d9c5b6f4-{number:05}" for number in range(MANY)]

CONNECTIONS_RULE = f"""
- seriesQuery: 'connections{{namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
"""
QUEUE_RULE = f"""
- seriesQuery: 'queue_depth{{namespace!=""}}'
  resources: {NAMESPACES}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
"""
RULES = f"""
rules:
{CONNECTIONS_RULE}
- seriesQuery: '{{__name__=~"^found_.+$",namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
- seriesQuery: '{{__name__=~"^ratio$",namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
- seriesQuery: 'connections{{namespace!="",pod!=""}}'
  name: {{as: without_the_label}}
  resources: {PODS}
  metricsQuery: 'sum by (namespace) (<<.Series>>{{<<.LabelMatchers>>}})'
- seriesQuery: 'not_yet{{namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
externalRules:
{QUEUE_RULE}
- seriesQuery: 'bus_lag'
  resources: {{namespaced: false}}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}}) by (topic)'
- seriesQuery: 'queue_not_yet{{namespace!=""}}'
  resources: {NAMESPACES}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
- seriesQuery: 'queue_not_yet{{namespace!=""}}'
  name: {{as: queue_or_zero}}
  resources: {NAMESPACES}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
  onNoData: 0
- seriesQuery: 'error_ratio{{namespace!=""}}'
  resources: {NAMESPACES}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
"""
SMALL = [
    pod("web-0", app="web"),
    pod("web-1", app="web"),
    pod("web-2", app="web"),
    pod("idle-0", app="idle"),
    pod("web-0", namespace="other", app="web"),
]
"""`idle-0` has no series."""
OBJECTS: dict[str, Any] = {"pods.json": listed(*SMALL, *(pod(name, namespace="big", app="web") for name in BIG))}

SAMPLES: Mapping[str, str] = {
    'connections{namespace="shop",pod="web-0"}': "10",
    'connections{namespace="shop",pod="web-1"}': "20",
    'connections{namespace="shop",pod="web-2"}': "30",
    'connections{namespace="other",pod="web-0"}': "99",
    **{f'connections{{namespace="big",pod="{name}"}}': "1" for name in BIG},
    'found_requests{namespace="shop",pod="web-0"}': "5",
    'used_cores{namespace="shop",pod="web-0",container="app"}': "0.25",
    'used_cores{namespace="other",pod="web-0",container="app"}': "1.5",
    'used_bytes{namespace="shop",pod="web-0",container="app"}': "1048576",
    'used_bytes{namespace="other",pod="web-0",container="app"}': "2097152",
    'ratio{namespace="shop",pod="web-0"}': "NaN",
    'ratio{namespace="shop",pod="web-1"}': "+Inf",
    'ratio{namespace="shop",pod="web-2"}': "-4",
    'error_ratio{namespace="shop"}': "NaN",
    'queue_depth{namespace="shop",queue="orders"}': "7",
    'queue_depth{namespace="shop",queue="mails"}': "1",
    'queue_depth{namespace="shop",queue="empty"}': "0",
    'queue_depth{namespace="other",queue="orders"}': "400",
    'bus_lag{topic="orders"}': "12",
    'bus_lag{topic="mails"}': "3",
}


def _samples_at(now: int) -> list[str]:
    times = moments(now, STEP_SECONDS, _PAST_SECONDS)
    # A series is there only near a sample; with 1,500 of them, and looked up by nobody, every fourth minute is enough.
    return samples(_courses(few=True), times) + samples(_courses(few=False), times[::8])


def _few_at(now: int) -> list[str]:
    return samples(_courses(few=True), moments(now, STEP_SECONDS, _PAST_SECONDS))


def _courses(*, few: bool) -> dict[str, Course]:
    """Return the series of the namespace `big`, or only the few other series."""
    return {series: always(value) for series, value in SAMPLES.items() if ('"big"' not in series) is few}


COMPLAINTS = Harness(RULES, OBJECTS, _samples_at, logs_queries=True)
SMALL_COMPLAINTS = replace(COMPLAINTS, samples_at=_few_at)
"""The harness without the series of the namespace `big`, whose Prometheus starts sooner."""
