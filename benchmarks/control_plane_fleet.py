"""Many apps in a cluster, each a Deployment of one pod with an HPA on a Pods metric.

Each pod has a value of its own, below its HPA's target: nothing scales, and an HPA that got another pod's value shows
that value.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.control_plane_stage import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.control_plane_stage import Stage
    from tests.e2e.controlplane.client import Document

METRIC: Final = "app_sessions"
TARGET: Final = 1_000_000
RULE: Final[Mapping[str, Any]] = {
    "seriesQuery": f'{METRIC}{{namespace!="",pod!=""}}',
    "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
    "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
}


@dataclass(frozen=True, slots=True)
class App:
    """One app: its Deployment, its HPA and its value."""

    namespace: str
    name: str
    value: int

    def deployment(self) -> Document:
        """Return the app's Deployment."""
        labels = {"app": self.name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "shop/app:1"}]}}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        }

    def autoscaler(self) -> Document:
        """Return the app's HPA."""
        target = {"type": "AverageValue", "averageValue": str(TARGET)}
        return {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.name},
                "minReplicas": 1,
                "maxReplicas": 3,
                "metrics": [{"type": "Pods", "pods": {"metric": {"name": METRIC}, "target": target}}],
            },
        }

    @property
    def question(self) -> tuple[str, str]:
        """The namespace and the selector of the HPA's requests."""
        return self.namespace, f"labelSelector=app%3D{self.name}"


def fleet(count: int, namespaces: int, prefix: str) -> list[App]:
    """Return this number of apps, spread evenly over namespaces whose names begin with `prefix`.

    No value is a multiple of ten, so that each is written out as a quantity: 1000 would be `1k`.
    """
    return [App(f"{prefix}-{number % namespaces}", f"app-{number:04d}", 10 * number + 1) for number in range(count)]


@contextmanager
def deployed(stage: Stage, apps: list[App]) -> Iterator[None]:
    """Create the apps, their values and, once Prometheus has all values, their HPAs; delete everything at the end."""
    client = stage.cluster.client
    namespaces = sorted({app.namespace for app in apps})
    pods: dict[App, str] = {}
    try:
        for name in namespaces:
            client.create("/api/v1/namespaces", {"metadata": {"name": name}})
        for app in apps:
            client.create(f"/apis/apps/v1/namespaces/{app.namespace}/deployments", app.deployment())
        pods |= stage.cluster.wait_for("pods of all apps", lambda: _pods(stage, apps), PATIENCE_SECONDS)
        for app, pod in pods.items():
            stage.metrics.set(METRIC, app.value, namespace=app.namespace, pod=pod)
        count = f"count({METRIC}) == {len(apps)}"
        stage.cluster.wait_for("the series", lambda: stage.prometheus.query(count), PATIENCE_SECONDS)
        for app in apps:
            client.create(f"/apis/autoscaling/v2/namespaces/{app.namespace}/horizontalpodautoscalers", app.autoscaler())
        yield
    finally:
        for name in namespaces:
            client.delete(f"/api/v1/namespaces/{name}")
        for app, pod in pods.items():
            stage.metrics.set(METRIC, None, namespace=app.namespace, pod=pod)


def _pods(stage: Stage, apps: list[App]) -> dict[App, str] | None:
    """Return the name of each app's pod; None while any of them is not Ready."""
    found = {
        (pod["metadata"]["namespace"], pod["metadata"]["labels"].get("app")): pod["metadata"]["name"]
        for name in {app.namespace for app in apps}
        for pod in stage.cluster.pods(name)
        if any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions") or [])
    }
    names = {app: found.get((app.namespace, app.name)) for app in apps}
    return {app: name for app, name in names.items() if name} if all(names.values()) else None


def told(stage: Stage, apps: list[App]) -> dict[App, str | None]:
    """Return the value that each app's HPA shows in its status; None if it shows none, or cannot scale by it."""
    shown = {
        (one["metadata"]["namespace"], one["metadata"]["name"]): _value(one.get("status") or {})
        for name in {app.namespace for app in apps}
        for one in stage.cluster.client.items(f"/apis/autoscaling/v2/namespaces/{name}/horizontalpodautoscalers")
    }
    return {app: shown.get((app.namespace, app.name)) for app in apps}


def _value(status: Document) -> str | None:
    active = [one["status"] for one in status.get("conditions") or [] if one["type"] == "ScalingActive"]
    metrics = status.get("currentMetrics") or [{}]
    value = metrics[0].get("pods", {}).get("current", {}).get("averageValue")
    return str(value) if active == ["True"] and value is not None else None
