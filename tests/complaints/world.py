"""What the complaints are tried on: a small shop, one namespace with 1,500 pods, and rules good and bad.

Samples lie in the past and in the next hour, so that nothing must be scraped; each value is constant.
"""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from demo.machine.prometheus import running_prometheus
from tests.support.prometheus import backfill, reload
from tests.support.serving import listed, pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess

STEP_SECONDS = 30
SHORT_LOOK_BACK = "--prometheus-look-back=1s"
"""So that a rule's value for no data need not wait for five minutes after each start of a Prometheus."""
_PAST_SECONDS = 90
_FUTURE_SECONDS = 3600
_QUERY_LOG = "queries.log"

MANY = 1500
"""Pods of the namespace `big`, as many as made a query too long for VictoriaMetrics."""
BIG = [f"checkout-frontend-7d9c5b6f4-{number:05}" for number in range(MANY)]

PODS = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
NAMESPACES = "{overrides: {namespace: {resource: namespace}}}"
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


def history(samples: Mapping[str, str] = SAMPLES) -> str:
    """Return these values from a minute and a half ago to an hour from now."""
    now = int(time.time())
    moments = range(now - _PAST_SECONDS, now + _FUTURE_SECONDS, STEP_SECONDS)
    # A series is there only near a sample; with 1,500 of them, and looked up by nobody, every fourth minute is enough.
    lines = [
        f"{series} {value} {moment}"
        for series, value in sorted(samples.items())
        for moment in (moments[::8] if '"big"' in series else moments)
    ]
    return "\n".join([*lines, "# EOF", ""])


@contextmanager
def prometheus_with(folder: Path, samples: Mapping[str, str] = SAMPLES) -> Iterator[PrometheusProcess]:
    """Run a Prometheus with these values that writes down which queries it is asked."""
    backfill(folder, history(samples))
    with running_prometheus(folder) as prometheus:
        prometheus.configure({"global": {"query_log_file": str(folder / _QUERY_LOG)}})
        reload(prometheus)
        yield prometheus


def queries_of(prometheus: PrometheusProcess) -> list[str]:
    """Return the text of all instant queries that Prometheus was asked so far, as it wrote them down."""
    lines = (prometheus.folder / _QUERY_LOG).read_text().splitlines()
    return [json.loads(line)["params"]["query"] for line in lines]


def series_now(url: str, selectors: Iterable[str], back_seconds: float) -> list[dict[str, str]]:
    """Return the series that Prometheus has, by a way that shares no code with the product."""
    now = time.time()
    parameters = [("match[]", one) for one in selectors] + [("start", str(now - back_seconds)), ("end", str(now))]
    with urllib.request.urlopen(f"{url}/api/v1/series?{urllib.parse.urlencode(parameters)}", timeout=10) as response:
        found: list[dict[str, str]] = json.load(response)["data"]
    return found
