"""Prometheus dies, hangs, or is down while the adapter restarts: nothing shrinks, and nothing else is delayed.

Scaling down looks back 0 s, so that the very next sync acts on a wrong number. Every test ends with a load that has
grown, which shows that scaling recovers by itself.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from adapter.foundation.hpa.documents import milli
from tests.e2e.controlplane.cluster import KubectlError
from tests.e2e.controlplane.pod_metrics import shared
from tests.e2e.support.autoscalers import Autoscaler, Autoscalers, external_metric, object_metric, pods_metric, service
from tests.e2e.support.installed import CUSTOM, InstalledAdapter, installed_adapter, namespace_of_its_own, values_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from demo.machine.prometheus import PrometheusProcess
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.support.prometheus import ScrapedPrometheus

# Answers have to grow old first, and pods to be replaced.
pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(600)]

FIRST_SIZE: Final = 6
GROWTH: Final = 2
TARGET: Final = 100
INACTIVE: Final = {
    "web": ("False", "FailedGetPodsMetric"),
    "api": ("False", "FailedGetObjectMetric"),
    "sender": ("False", "FailedGetExternalMetric"),
}
"""The condition ScalingActive of each HPA once there are no more answers."""
_FAILED_SECONDS: Final = 120.0
_ANSWERS: Final = 12
"""Once in 2,000 times, all of these are from one of two replicas: the API server picks one for each request."""


@dataclass(slots=True)
class Scene:
    """Three workloads whose loads exactly fit their sizes, two replicas of the adapter, one Prometheus."""

    cluster: Cluster
    adapter: InstalledAdapter
    scalers: Autoscalers
    prometheus: PrometheusProcess
    pod_metrics: PodMetrics
    size: int = FIRST_SIZE

    def load(self) -> None:
        """Set the loads that fit the size."""
        total, namespace = TARGET * self.size, self.scalers.namespace
        self.pod_metrics.of_pods("connections", namespace, "app=web", shared(total))
        self.pod_metrics.set("requests_in_flight", total, namespace=namespace, service="api")
        self.pod_metrics.set("queue_length", total, namespace=namespace, queue="mail")

    def has_failed(self) -> bool:
        """Return whether every HPA reports that it has no metric."""
        return all(self.scalers.conditions(name).get("ScalingActive") == state for name, state in INACTIVE.items())

    def assert_unharmed(self, available_since: object) -> None:
        """Let the controller sync again, and assert that nothing shrank and that the APIs stayed Available."""
        self.scalers.wait_for_syncs(1)
        assert self.scalers.sizes() == dict.fromkeys(INACTIVE, self.size)
        assert self.has_failed()
        assert self.adapter.unavailable() == {}
        assert self.available_since() == available_since

    def available_since(self) -> dict[str, str]:
        """Return when each APIService became Available; the time changes if one was unavailable, however briefly."""
        return {name: one["lastTransitionTime"] for name, one in self.adapter.availability().items()}

    def assert_namespaces_can_be_deleted(self) -> None:
        """Assert that namespaces can be deleted: this lists every API group, and fails while one is unavailable."""
        name = f"{self.scalers.namespace}-empty"
        self.cluster.kubectl("create", "namespace", name)
        self.cluster.kubectl("delete", "namespace", name, "--timeout=50s")

    def assert_it_scales(self) -> None:
        """Let the loads grow, and wait until the sizes have followed and each replica of the adapter knows the loads.

        A replica whose last good answer is from before the growth may serve it for 8 s of the next outage.
        """
        self.size += GROWTH
        self.load()
        self.scalers.wait_for_sizes(**dict.fromkeys(INACTIVE, self.size))
        self.cluster.wait_for("the loads in each replica", self._is_known, why_not=self._loads)

    def _is_known(self) -> bool:
        """Return whether all of so many answers are new that each replica has given one of them."""
        return all(set(self._loads().values()) == {TARGET * self.size * 1000} for _ in range(_ANSWERS))

    def _loads(self) -> dict[str, int]:
        """Return each workload's load in thousandths, as known by the replica that the API server picks."""
        replies = {name: self.scalers.ask(one) for name, one in self.scalers.all.items()}
        return {
            name: sum(milli(item["value"]) for item in reply.document.get("items") or ())
            for name, reply in replies.items()
        }


@pytest.fixture(scope="module")
def scene(cluster: Cluster, prometheus: ScrapedPrometheus, pod_metrics: PodMetrics) -> Iterator[Scene]:
    """Yield a scene in which answers become too old after 8 s instead of a minute, so that outages can be short."""
    values = values_for(prometheus, 2, "--max-answer-age=8s", "--refresh-interval=2s")
    with installed_adapter(cluster, values) as adapter, namespace_of_its_own(cluster, "outages") as namespace:
        at = {"averageValue": str(TARGET)}
        scalers = Autoscalers(
            cluster,
            namespace,
            Autoscaler(namespace, "web", pods_metric("connections", str(TARGET)), FIRST_SIZE, 1, 20),
            Autoscaler(
                namespace, "api", object_metric("requests_in_flight", "Service", "api", **at), FIRST_SIZE, 1, 20
            ),
            Autoscaler(
                namespace, "sender", external_metric("queue_length", {"queue": "mail"}, **at), FIRST_SIZE, 1, 20
            ),
        )
        scene = Scene(cluster, adapter, scalers, prometheus.prometheus, pod_metrics)
        cluster.apply(service(namespace, "api"))
        scalers.create_deployments()
        scene.load()
        scalers.wait_for_answers()
        scalers.create_hpas()
        scene.assert_it_scales()
        yield scene
        pod_metrics.forget_pods("connections", namespace, "app=web")


@contextmanager
def killed(prometheus: PrometheusProcess) -> Iterator[None]:
    """Kill Prometheus for the block: nothing listens any more, and connections are refused."""
    prometheus.kill()
    try:
        yield
    finally:
        prometheus.start_again()


@contextmanager
def paused(prometheus: PrometheusProcess) -> Iterator[None]:
    """Pause Prometheus for the block: connections are accepted and never answered, so that only deadlines help."""
    prometheus.pause()
    try:
        yield
    finally:
        prometheus.resume()


@pytest.mark.parametrize("outage", [killed, paused])
def test_without_prometheus_nothing_shrinks_and_scaling_goes_on_afterwards(
    scene: Scene, outage: Callable[[PrometheusProcess], AbstractContextManager[None]]
) -> None:
    since = scene.available_since()
    with outage(scene.prometheus):
        scene.assert_namespaces_can_be_deleted()
        scene.cluster.wait_for(
            "the end of old answers", scene.has_failed, _FAILED_SECONDS, why_not=scene.scalers.states
        )
        scene.assert_unharmed(since)
    scene.assert_it_scales()


def test_an_aged_answer_has_a_warning_for_users_but_not_for_the_controller(scene: Scene) -> None:
    """The HPA controller would log each warning that it gets, for each request."""
    path = f"{CUSTOM}/namespaces/{scene.scalers.namespace}/pods/*/connections?labelSelector=app%3Dweb"

    def warning() -> str | None:
        try:
            scene.cluster.kubectl("get", "--raw", path, "--warnings-as-errors")
        except KubectlError as error:
            return str(error) if "Warning: " in str(error) else None
        return None

    assert warning() is None
    with killed(scene.prometheus):
        told = scene.cluster.wait_for("a warning of kubectl's", warning)
    scene.assert_it_scales()
    assert "s old: Prometheus cannot be asked" in told
    controller = scene.cluster.plane.process("kube-controller-manager").log_path.read_text(errors="replace")
    assert "s old: Prometheus" not in controller


@pytest.mark.parametrize("outage", [killed, paused])
def test_an_adapter_that_starts_without_prometheus_is_available_and_shrinks_nothing(
    scene: Scene, outage: Callable[[PrometheusProcess], AbstractContextManager[None]]
) -> None:
    since = scene.available_since()
    with outage(scene.prometheus):
        scene.adapter.restart()
        scene.assert_namespaces_can_be_deleted()
        scene.cluster.wait_for("no answers", scene.has_failed, _FAILED_SECONDS, why_not=scene.scalers.states)
        scene.assert_unharmed(since)
    scene.assert_it_scales()
