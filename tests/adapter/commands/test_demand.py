"""The number of queries that many clients cost, counted by Prometheus itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tests.support.harnesses import PODS, Harness, always, data_queries_counted, moments, queries_counted, samples
from tests.support.serving import Trust, eventually, listed, pod

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


def _samples_at(now: int) -> list[str]:
    """Return samples of one value for the next hour, every two minutes, since Prometheus looks back for five."""
    courses = {
        f'{metric}{{namespace="{namespace}",pod="web-0"}}': always(value_of(metric, namespace))
        for metric in METRICS
        for namespace in NAMESPACES
    }
    return samples(courses, moments(now, step_seconds=120, past_seconds=240))


HARNESS = Harness(RULES, OBJECTS, _samples_at)


def ask_all(caller: Caller) -> list[tuple[str, str, Answer]]:
    return [
        (metric, namespace, caller.pods(metric, namespace, labelSelector=selector))
        for metric in METRICS
        for namespace in NAMESPACES
        for selector in SELECTORS
    ]


def test_two_hundred_requests_cost_one_query_per_metric_and_refresh(tmp_path: Path, trust: Trust) -> None:
    with (
        HARNESS.running(tmp_path, trust) as (prometheus, adapter),
        adapter.caller() as caller,
    ):
        eventually(lambda: len([name for name in caller.listed() if name.startswith("pods/")]) == len(METRICS))
        for metric, namespace, answer in ask_all(caller):
            assert answer.values == {"web-0": value_of(metric, namespace)}
        # The first few namespaces were queried one by one; so many are queried together.
        eventually(lambda: adapter.metric("tidewatch_adapter_rule_plan", plan="wide") == len(METRICS))
        asked = len(METRICS) * len(NAMESPACES) * len(SELECTORS)
        assert queries_counted(prometheus) < asked
        eventually(lambda: is_quiet(prometheus))
        before, started = data_queries_counted(prometheus, adapter), time.monotonic()
        rounds = 0
        while data_queries_counted(prometheus, adapter) < before + 3 * len(METRICS):
            ask_all(caller)
            rounds += 1
        refreshes = (time.monotonic() - started) / SHORTEST_REFRESH_SECONDS + 1
        assert data_queries_counted(prometheus, adapter) - before <= len(METRICS) * refreshes
        assert rounds * asked > 2 * (data_queries_counted(prometheus, adapter) - before)


def is_quiet(prometheus: PrometheusProcess) -> bool:
    """Return whether Prometheus gets no queries: the first round is over, and the next refresh is seconds away."""
    return len({queries_counted(prometheus) for _ in range(50)}) == 1
