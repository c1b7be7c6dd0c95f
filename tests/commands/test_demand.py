"""What many askers cost Prometheus, told by its own counter."""

from __future__ import annotations

import re
import time
import urllib.request
from typing import TYPE_CHECKING, Any

from demo.machine.prometheus import running_prometheus
from tests.commands.world import PODS
from tests.support.prometheus import backfill
from tests.support.serving import Trust, eventually, listed, pod, running_adapter

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Answer, Caller

METRICS = [f"load_{number}" for number in range(5)]
NAMESPACES = [f"ns-{number}" for number in range(20)]
SELECTORS = ["app=web", "app in (web,db)"]
RULES = f"""
rules:
- seriesQuery: '{{__name__=~"^load_[0-9]+$",namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
"""
OBJECTS: dict[str, Any] = {"pods.json": listed(*(pod("web-0", namespace, app="web") for namespace in NAMESPACES))}
SHORTEST_REFRESH_SECONDS = 1.0


def value_of(metric: str, namespace: str) -> int:
    return 100 * METRICS.index(metric) + NAMESPACES.index(namespace) + 1


def history() -> str:
    """One value for the next hour, told every two minutes: Prometheus looks back for five."""
    now = int(time.time())
    lines = [
        f'{metric}{{namespace="{namespace}",pod="web-0"}} {value_of(metric, namespace)} {moment}'
        for metric in METRICS
        for namespace in NAMESPACES
        for moment in range(now - 60, now + 3600, 120)
    ]
    return "\n".join([*lines, "# EOF", ""])


def queries_counted(prometheus: PrometheusProcess) -> int:
    with urllib.request.urlopen(f"{prometheus.url}/metrics", timeout=10) as response:
        text: str = response.read().decode()
    counted = re.findall(r'^prometheus_http_requests_total\{.*handler="/api/v1/query".*\} (\S+)$', text, re.MULTILINE)
    return sum(int(float(number)) for number in counted)


def ask_all(caller: Caller) -> list[tuple[str, str, Answer]]:
    return [
        (metric, namespace, caller.pods(metric, namespace, labelSelector=selector))
        for metric in METRICS
        for namespace in NAMESPACES
        for selector in SELECTORS
    ]


def test_two_hundred_requests_cost_one_query_a_metric_and_refresh(tmp_path: Path, trust: Trust) -> None:
    folder = tmp_path / "prometheus"
    backfill(folder, history())
    with (
        running_prometheus(folder) as prometheus,
        running_adapter(tmp_path, trust, prometheus_url=prometheus.url, rules=RULES, objects=OBJECTS) as adapter,
        adapter.caller() as caller,
    ):
        eventually(lambda: len([name for name in caller.listed() if name.startswith("pods/")]) == len(METRICS))
        for metric, namespace, answer in ask_all(caller):
            assert answer.values == {"web-0": value_of(metric, namespace)}
        # The first few namespaces were asked for alone; so many are asked for together.
        eventually(lambda: adapter.metric("tidewatch_adapter_rule_plan", plan="wide") == len(METRICS))
        asked = len(METRICS) * len(NAMESPACES) * len(SELECTORS)
        assert queries_counted(prometheus) < asked
        eventually(lambda: is_quiet(prometheus))
        before, started = queries_counted(prometheus), time.monotonic()
        rounds = 0
        while queries_counted(prometheus) < before + 3 * len(METRICS):
            ask_all(caller)
            rounds += 1
        refreshes = (time.monotonic() - started) / SHORTEST_REFRESH_SECONDS + 1
        assert queries_counted(prometheus) - before <= len(METRICS) * refreshes
        assert rounds * asked > 2 * (queries_counted(prometheus) - before)


def is_quiet(prometheus: PrometheusProcess) -> bool:
    """Whether nothing is asked for a while: what the first round began is over, the next refresh is seconds away."""
    return len({queries_counted(prometheus) for _ in range(50)}) == 1
