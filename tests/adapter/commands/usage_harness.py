"""A small cluster that uses known amounts of CPU and memory, shown by rules as kube-prometheus writes them.

Counters grow by their rate from the past into the future, so that what is right is known without asking.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.support.harnesses import Harness, always, moments, samples
from tests.support.serving import listed, pod

MIB = 1024**2
_STEP_SECONDS = 15
_PAST_SECONDS = 150
_FUTURE_SECONDS = 1800

_OVERRIDES = "namespace: {resource: namespace}, pod: {resource: pod}"
_CONTAINERS = '<<.LabelMatchers>>,container!="",pod!=""'
CPU = f"""
  cpu:
    containerQuery: |
      sum by (<<.GroupBy>>) (
        irate (
            container_cpu_usage_seconds_total{{{_CONTAINERS}}}[120s]
        )
      )
    nodeQuery: |
      sum(1 - irate(node_cpu_seconds_total{{mode="idle"}}[60s])
        * on(namespace, pod) group_left(node) node_namespace_pod:kube_pod_info:{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
    resources:
      overrides: {{node: {{resource: node}}, {_OVERRIDES}}}
    containerLabel: container
"""
MEMORY = f"""
  memory:
    containerQuery: |
      sum by (<<.GroupBy>>) (container_memory_working_set_bytes{{{_CONTAINERS}}})
    nodeQuery: |
      sum(node_memory_MemTotal_bytes{{job="node-exporter",<<.LabelMatchers>>}}
        - node_memory_MemAvailable_bytes{{job="node-exporter",<<.LabelMatchers>>}}) by (<<.GroupBy>>)
    resources:
      overrides: {{instance: {{resource: node}}, {_OVERRIDES}}}
    containerLabel: container
"""
RULES = f"resourceRules:\n{CPU}{MEMORY}\n  window: 5m\n"
OTHER_NAMESPACES = [f"ns-{number}" for number in range(20)]


def node(name: str, **labels: str) -> dict[str, Any]:
    """Return a Node as the API server lists it."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


OBJECTS: dict[str, Any] = {
    "objects.json": listed(
        pod("web-0", app="web", tier="front"),
        pod("web-1", app="web"),
        pod("db-0", app="db"),
        pod("new-0", app="new"),
        pod("odd-0", app="odd"),
        pod("idle-0", app="idle"),
        pod("web-0", namespace="other", app="web"),
        *(pod("web-0", namespace, app="web") for namespace in OTHER_NAMESPACES),
        node("n1", zone="a"),
        node("n2", zone="b"),
        node("n3", zone="b"),
    )
}
"""`idle-0` and `n3` have no series, `n2` has no memory series, `db-0` and one container of `new-0` no CPU series."""

_RATES = {
    'container_cpu_usage_seconds_total{namespace="shop",pod="web-0",container="app"}': 0.25,
    'container_cpu_usage_seconds_total{namespace="shop",pod="web-0",container="proxy"}': 0.0625,
    'container_cpu_usage_seconds_total{namespace="shop",pod="web-0",id="/pod"}': 0.5,
    'container_cpu_usage_seconds_total{namespace="shop",pod="web-1",container="app"}': 0.5,
    'container_cpu_usage_seconds_total{namespace="shop",pod="web-1",container="setup"}': 0.125,
    'container_cpu_usage_seconds_total{namespace="shop",pod="new-0",container="app"}': 0.25,
    'container_cpu_usage_seconds_total{namespace="shop",pod="gone-0",container="app"}': 2,
    'container_cpu_usage_seconds_total{namespace="other",pod="web-0",container="app"}': 1.5,
    'node_cpu_seconds_total{mode="idle",cpu="0",namespace="monitoring",pod="exporter-1"}': 0.75,
    'node_cpu_seconds_total{mode="idle",cpu="1",namespace="monitoring",pod="exporter-1"}': 0.5,
    'node_cpu_seconds_total{mode="user",cpu="0",namespace="monitoring",pod="exporter-1"}': 0.25,
    'node_cpu_seconds_total{mode="idle",cpu="0",namespace="monitoring",pod="exporter-2"}': 0.875,
    **{
        f'container_cpu_usage_seconds_total{{namespace="{namespace}",pod="web-0",container="app"}}': 0.125
        for namespace in OTHER_NAMESPACES
    },
}
"""The growth of each counter per second."""
_CONSTANT = {
    'container_memory_working_set_bytes{namespace="shop",pod="web-0",container="app"}': 100 * MIB,
    'container_memory_working_set_bytes{namespace="shop",pod="web-0",container="proxy"}': 10 * MIB,
    'container_memory_working_set_bytes{namespace="shop",pod="web-0",id="/pod"}': 200 * MIB,
    'container_memory_working_set_bytes{namespace="shop",pod="web-1",container="app"}': 200 * MIB,
    'container_memory_working_set_bytes{namespace="shop",pod="new-0",container="app"}': 30 * MIB,
    'container_memory_working_set_bytes{namespace="shop",pod="new-0",container="proxy"}': 3 * MIB,
    'container_memory_working_set_bytes{namespace="shop",pod="db-0",container="db"}': 1024 * MIB,
    'container_memory_working_set_bytes{namespace="shop",pod="odd-0",container="app"}': "-1",
    'container_cpu_usage_seconds_total{namespace="shop",pod="odd-0",container="app"}': "NaN",
    'container_memory_working_set_bytes{namespace="other",pod="web-0",container="app"}': 300 * MIB + 1,
    'node_namespace_pod:kube_pod_info:{namespace="monitoring",pod="exporter-1",node="n1"}': 1,
    'node_namespace_pod:kube_pod_info:{namespace="monitoring",pod="exporter-2",node="n2"}': 1,
    'node_memory_MemTotal_bytes{job="node-exporter",instance="n1"}': 4096 * MIB,
    'node_memory_MemAvailable_bytes{job="node-exporter",instance="n1"}': 1024 * MIB,
    **{
        f'container_memory_working_set_bytes{{namespace="{namespace}",pod="web-0",container="app"}}': 64 * MIB
        for namespace in OTHER_NAMESPACES
    },
}


def _samples_at(now: int) -> list[str]:
    times = moments(now, _STEP_SECONDS, _PAST_SECONDS, _FUTURE_SECONDS)
    counters = {series: partial(_counter_value, rate, times[0]) for series, rate in _RATES.items()}
    return samples(counters, times) + samples({series: always(value) for series, value in _CONSTANT.items()}, times)


def _counter_value(rate: float, start: int, moment: int) -> float:
    """Return what a counter that started at 0 and grows at this rate shows."""
    return (moment - start) * rate


USAGE = Harness(RULES, OBJECTS, _samples_at)
