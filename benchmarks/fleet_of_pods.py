"""A made-up cluster in which every number is known: the values of exporters, the requests of HPAs, the right answers.

Some namespaces have apps of a few pods each; every app has an HPA with a Pods metric and one with an External metric.
Values follow from the pod's number, so that an answer with the value of another pod or metric is recognised as wrong.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COUNTER = "app_requests_total"
RATE = "app_requests_per_second"
QUEUE = "app_queue_messages"
CONTAINER = "app"
"""The only container of every pod."""
RATES = 97
"""The number of different rates: a prime, so that the rates of neighbours differ whatever the number of pods."""

_POD_RULE = """\
- seriesQuery: '{series}{{namespace!="",pod!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}, pod: {{resource: pod}}}}}}
  name: {{as: {name}}}
  metricsQuery: '{query}'
"""
_QUEUE_RULE = """\
- seriesQuery: '{series}{{namespace!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}}}}}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
"""
_RESOURCE_RULE = """\
  {resource}:
    containerQuery: '{query}'
    resources: {{overrides: {{namespace: {{resource: namespace}}, pod: {{resource: pod}}, node: {{resource: node}}}}}}
    containerLabel: container
"""


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the fleet. Apps, pods and metrics are numbered from 0; values are in thousandths (milli)."""

    apps: int
    pods_per_app: int = 5
    metrics: int = 5
    namespaces: int = 50

    @property
    def pods(self) -> int:
        """Number of all pods."""
        return self.apps * self.pods_per_app

    def namespace(self, app: int) -> str:
        """Return the app's namespace."""
        return f"team-{app % self.namespaces:02d}"

    def name(self, app: int) -> str:
        """Return the app's name, which is also the value of its pods' label `app`."""
        return f"app-{app:05d}"

    def pod(self, app: int, number: int) -> str:
        """Return the name of an app's pod, as long as a Deployment would make it."""
        return f"app-{app:05d}-7d9c5b6f48-x{number:04d}"

    def queue(self, app: int) -> str:
        """Return the app's queue, as its External metric's selector names it."""
        return f"queue-{app:05d}"

    def metric_of(self, app: int) -> int:
        """Return the metric that the app's HPA asks for; each metric is asked for in each namespace."""
        return app // self.namespaces % self.metrics

    def metric_name(self, metric: int) -> str:
        """Return a metric's name in the API."""
        return RATE if metric == 0 else f"app_load_{metric}"

    def rate(self, app: int, number: int) -> int:
        """Return how fast a pod's counter grows, per second."""
        return 1 + (app * self.pods_per_app + number) % RATES

    def milli(self, app: int, number: int, metric: int) -> int:
        """Return a pod's value of a metric. Gauges are eighths, which are exact as floats and in thousandths."""
        if metric == 0:
            return 1000 * self.rate(app, number)
        return 125 * ((app * self.pods_per_app + number) * self.metrics + metric)

    def queue_milli(self, app: int) -> int:
        """Return the length of the app's queue."""
        return 1000 * (3 * app + 1)

    def rules(self, rate_window: str) -> str:
        """Return the rule file in prometheus-adapter's format."""
        counted = f"sum by (<<.GroupBy>>) (rate(<<.Series>>{{<<.LabelMatchers>>}}[{rate_window}]))"
        gauged = "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})"
        rules = [_POD_RULE.format(series=COUNTER, name=RATE, query=counted)]
        for metric in range(1, self.metrics):
            name = self.metric_name(metric)
            rules.append(_POD_RULE.format(series=name, name=name, query=gauged))
        external = f"externalRules:\n{_QUEUE_RULE.format(series=QUEUE)}"
        return f"rules:\n{''.join(rules)}{external}{self._resource_rules(rate_window)}"

    def usage_milli(self, app: int, number: int) -> dict[str, int]:
        """Return what a pod's container uses, by resource: its counter's rate as CPU, the first gauge as memory."""
        usage = {"cpu": self.milli(app, number, 0)}
        if self.metrics > 1:
            usage["memory"] = self.milli(app, number, 1)
        return usage

    def write_objects(self, folder: Path) -> None:
        """Write all pods as one List, with the labels that a Deployment's pods have."""
        folder.mkdir(parents=True, exist_ok=True)
        pods = [self._manifest(app, number) for app in range(self.apps) for number in range(self.pods_per_app)]
        text = json.dumps({"kind": "List", "apiVersion": "v1", "items": pods})
        (folder / "pods.json").write_text(text, encoding="utf-8")

    def gauge_lines(self, apps: range) -> Iterator[str]:
        """Yield the exposition of all values of some apps that do not change."""
        for app in apps:
            namespace = self.namespace(app)
            for number in range(self.pods_per_app):
                labels = f'namespace="{namespace}",pod="{self.pod(app, number)}",container="{CONTAINER}"'
                for metric in range(1, self.metrics):
                    yield f"{self.metric_name(metric)}{{{labels}}} {self.milli(app, number, metric) / 1000}\n"
            yield f'{QUEUE}{{namespace="{namespace}",queue="{self.queue(app)}"}} {self.queue_milli(app) // 1000}\n'

    def counter_series(self, apps: range) -> dict[int, list[str]]:
        """Return the counters of some apps by their rate, without values, which are the rate times the time."""
        series: dict[int, list[str]] = {}
        for app in apps:
            for number in range(self.pods_per_app):
                place = f'namespace="{self.namespace(app)}",pod="{self.pod(app, number)}"'
                labels = f'{place},container="{CONTAINER}"'
                series.setdefault(self.rate(app, number), []).append(f"{COUNTER}{{{labels}}}")
        return series

    def _resource_rules(self, rate_window: str) -> str:
        """Return rules for metrics.k8s.io; those of nodes, which nobody asks for here, are left out."""
        matchers = "{<<.LabelMatchers>>}"
        queries = {"cpu": f"sum by (<<.GroupBy>>) (rate({COUNTER}{matchers}[{rate_window}]))"}
        if self.metrics > 1:
            queries["memory"] = f"sum by (<<.GroupBy>>) ({self.metric_name(1)}{matchers})"
        made = [_RESOURCE_RULE.format(resource=resource, query=query) for resource, query in queries.items()]
        return f"resourceRules:\n{''.join(made)}  window: {rate_window}\n"

    def _manifest(self, app: int, number: int) -> dict[str, Any]:
        labels = {"app": self.name(app), "team": self.namespace(app), "pod-template-hash": "7d9c5b6f48"}
        metadata = {"name": self.pod(app, number), "namespace": self.namespace(app), "labels": labels}
        return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}
