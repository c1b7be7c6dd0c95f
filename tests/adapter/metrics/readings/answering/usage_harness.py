"""Pods and nodes that use CPU and memory, as a scripted Prometheus reports them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError
from adapter.metrics.readings.answers import BySelector
from tests.support.readings import Harness, MadeUpObjects, Reply, ScriptedPrometheus, make_harness, reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.sources.prometheus.errors import PrometheusError
    from adapter.metrics.readings.answers import UsageAnswer
    from adapter.metrics.readings.readings_settings import ReadingSettings


ALL = BySelector(EVERYTHING)
OVERRIDES = "{overrides: {node: {resource: node}, namespace: {resource: namespace}, pod: {resource: pod}}}"


def rule(name: str, containers: str = "", nodes: str = "") -> str:
    return f"""
  {name}:
    containerQuery: '{containers or f"sum by (<<.GroupBy>>) ({name}_used{{<<.LabelMatchers>>}})"}'
    nodeQuery: '{nodes or f"sum by (<<.GroupBy>>) (node_{name}_used{{<<.LabelMatchers>>}})"}'
    resources: {OVERRIDES}
    containerLabel: container
"""


RULES = f"resourceRules:{rule('cpu')}{rule('memory')}  window: 2m\n"
NAMESPACES = {
    "shop": ["web-0", "web-1", "db-0", "done-0", "neg-0", "new-0", "odd-0"],
    "other": ["web-0"],
    "empty": [],
    None: ["n-1", "n-2"],
}


def sample(namespace: str, pod: str, container: str, value: str) -> tuple[Mapping[str, str], str]:
    return {"namespace": namespace, "pod": pod, "container": container}, value


CPU = reply(
    sample("shop", "web-0", "proxy", "0.5"),
    sample("shop", "web-0", "app", "1"),
    sample("shop", "web-1", "app", "2"),
    sample("shop", "web-1", "init", "0.25"),
    sample("shop", "done-0", "app", "0.125"),
    sample("shop", "neg-0", "app", "1"),
    sample("shop", "neg-0", "proxy", "1"),
    sample("shop", "new-0", "app", "1"),
    sample("shop", "gone-0", "app", "9"),
    sample("shop", "odd-0", "app", "NaN"),
    sample("other", "web-0", "app", "3"),
    ({"namespace": "shop", "pod": "web-0"}, "1.5"),
    ({"namespace": "shop", "pod": "web-0", "container": "a/b"}, "7"),
)
MEMORY = reply(
    sample("shop", "web-0", "app", "100"),
    sample("shop", "web-0", "proxy", "10"),
    sample("shop", "db-0", "db", "50"),
    sample("shop", "web-1", "app", "200"),
    sample("shop", "neg-0", "app", "20"),
    sample("shop", "neg-0", "proxy", "-1"),
    sample("shop", "new-0", "app", "30"),
    sample("shop", "new-0", "proxy", "3"),
    sample("shop", "odd-0", "app", "+Inf"),
    sample("other", "web-0", "app", "300"),
)
NODE_CPU = reply(({"node": "n-1"}, "4"), ({"node": "n-9"}, "1"))
NODE_MEMORY = reply(({"node": "n-1"}, "1000"), ({"node": "n-2"}, "2000"))
Answers = dict[str, "Reply | PrometheusError | Exception"]


def answering(**changed: Reply | PrometheusError | Exception) -> Callable[[str], Reply | PrometheusError | Exception]:
    answers: Answers = {
        "node_cpu_used": NODE_CPU,
        "node_memory_used": NODE_MEMORY,
        "cpu_used": CPU,
        "memory_used": MEMORY,
        **changed,
    }
    by_longest = sorted(answers, key=len, reverse=True)
    return lambda query: next(answers[name] for name in by_longest if name in query)


def harness_of(prometheus: ScriptedPrometheus, rules: str = RULES, settings: ReadingSettings | None = None) -> Harness:
    return make_harness(prometheus, rules=rules, objects=MadeUpObjects(NAMESPACES), settings=settings)


def used(answer: UsageAnswer) -> dict[str, Mapping[str, Mapping[str, float]]]:
    return {f"{item.namespace}/{item.name}": item.used for item in answer.items}


SHOP = {
    "shop/web-0": {"app": {"cpu": 1, "memory": 100}, "proxy": {"cpu": 0.5, "memory": 10}},
    "shop/web-1": {"app": {"cpu": 2, "memory": 200}, "init": {"cpu": 0.25}},
}
"""An ended init container has no memory. If any other container lacks a value, it would count as using none."""
DOWN = PrometheusUnreachableError("q", "http://prometheus:9090: connection refused")
