"""Data that is bad, absent or outdated never shrinks a Deployment: no missing sample counts as 0.

Every load is at 95% of its target, so that a sample that is rightly dropped changes nothing while a single 0 shrinks
the Deployment; and scaling down looks back 0 s, so that the very next sync acts on a wrong number. All cases run at the
same time, since it is the controller's clock that takes time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from tests.e2e.controlplane.cluster import PATIENCE_SECONDS
from tests.e2e.controlplane.pod_metrics import each
from tests.e2e.support.autoscalers import Autoscaler, Autoscalers, external_metric, object_metric, pods_metric, service
from tests.e2e.support.installed import installed_adapter, namespace_of_its_own, values_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics, Values
    from tests.support.prometheus import ScrapedPrometheus

# The fixture of this module plays for minutes, by the controller's clock.
pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(600)]

SIZE: Final = 6
BAD_SYNCS: Final = 4
NAN: Final = float("nan")


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of bad data, and the workload of six pods that it affects."""

    metric: Document
    good: Callable[[], None]
    bad: Callable[[], None]
    half: Callable[[], None]
    """Lets the load truly fall, to half of the target or to nothing."""


@dataclass(frozen=True, slots=True)
class Course:
    """The observations of all cases."""

    before: Mapping[str, int]
    smallest: Mapping[str, int]
    """The smallest size while the data was bad."""
    largest: Mapping[str, int]
    active: Mapping[str, str]
    """The reason of the condition ScalingActive at the end of the bad data."""


def first_is(odd: float | None, value: float) -> Values:
    """Give the first pod a value that differs from the others', or none."""
    return lambda pods: {pod: given for pod in pods if (given := odd if pod == pods[0] else value) is not None}


def counters(per_second: float, *, restarted: bool = False) -> Values:
    """Return counters that grow evenly; the first pod's starts at 0 again, as after a restart of its process."""
    now = time.monotonic()

    def values(pods: Sequence[str]) -> Mapping[str, float]:
        since = [now if restarted and pod == pods[0] else 0.0 for pod in pods]
        return {pod: per_second * (time.monotonic() - start) for pod, start in zip(pods, since, strict=True)}

    return values


def cases_in(namespace: str, exported: PodMetrics) -> dict[str, Case]:
    """Return all cases, by the names of their workloads."""

    def of_pods(name: str, bad: Values | None) -> Case:
        def export(values: Values | None) -> Callable[[], None]:
            if values is None:
                return lambda: exported.forget_pods("connections", namespace, f"app={name}")
            return lambda: exported.of_pods("connections", namespace, f"app={name}", values)

        return Case(pods_metric("connections", "100"), export(each(95)), export(bad), export(each(50)))

    def of_one(metric: Document, series: str, loads: tuple[float, float | None, float], **at: str) -> Case:
        def export(value: float | None) -> Callable[[], None]:
            return lambda: exported.set(series, value, namespace=namespace, **at)

        good, bad, half = map(export, loads)
        return Case(metric, good, bad, half)

    def counted(*, restarted: bool, per_second: float) -> Callable[[], None]:
        return lambda: exported.of_pods(
            "messages_total", namespace, "app=reset-of-one-pod", counters(per_second, restarted=restarted)
        )

    of_service = object_metric("requests_in_flight", "Service", "api", value="100")
    of_deployment = object_metric("backlog", "Deployment", "object-gone", averageValue="100")
    return {
        "nan-on-one-pod": of_pods("nan-on-one-pod", first_is(NAN, 95)),
        "none-on-one-pod": of_pods("none-on-one-pod", first_is(None, 95)),
        "nan-on-all-pods": of_pods("nan-on-all-pods", each(NAN)),
        "pods-gone": of_pods("pods-gone", None),
        "reset-of-one-pod": Case(
            pods_metric("messages_per_second", "100"),
            counted(restarted=False, per_second=95),
            counted(restarted=True, per_second=95),
            # Half as much would look like a reset to a value that is reached in an instant, for a whole window.
            counted(restarted=False, per_second=0),
        ),
        "object-nan": of_one(of_service, "requests_in_flight", (95, NAN, 50), service="api"),
        "object-gone": of_one(of_deployment, "backlog", (570, None, 300), deployment="object-gone"),
        "external-nan": of_one(queue("nan"), "queue_length", (570, NAN, 300), queue="nan"),
        "external-gone": of_one(queue("gone"), "queue_length", (570, None, 300), queue="gone"),
    }


def queue(name: str) -> Document:
    return external_metric("queue_length", {"queue": name}, averageValue="100")


NAMES: Final = (
    "nan-on-one-pod",
    "none-on-one-pod",
    "nan-on-all-pods",
    "pods-gone",
    "reset-of-one-pod",
    "object-nan",
    "object-gone",
    "external-nan",
    "external-gone",
)


@pytest.fixture(scope="module")
def course(cluster: Cluster, prometheus: ScrapedPrometheus, pod_metrics: PodMetrics) -> Iterator[Course]:
    """Let all cases be stable, turn bad, and then truly fall to half."""
    with (
        installed_adapter(cluster, values_for(prometheus)),
        namespace_of_its_own(cluster, "bad-data") as namespace,
    ):
        cases = cases_in(namespace, pod_metrics)
        scalers = Autoscalers(
            cluster, namespace, *(Autoscaler(namespace, name, case.metric, SIZE) for name, case in cases.items())
        )
        cluster.apply(service(namespace, "api"))
        let_all_stand(scalers, cases, prometheus)
        before = scalers.look()
        for case in cases.values():
            case.bad()
        wait_until_bad(prometheus, f'{{namespace="{namespace}"}}')
        smallest, largest = watched(scalers)
        active = {name: scalers.conditions(name)["ScalingActive"][1] for name in cases}
        for case in cases.values():
            case.half()
        cluster.wait_for(
            "all to shrink", lambda: max(scalers.sizes().values()) < SIZE, 2 * PATIENCE_SECONDS, why_not=scalers.states
        )
        yield Course(before, smallest, largest, active)
        for name in cases:
            for metric in ("connections", "messages_total"):
                pod_metrics.forget_pods(metric, namespace, f"app={name}")


def let_all_stand(scalers: Autoscalers, cases: Mapping[str, Case], prometheus: ScrapedPrometheus) -> None:
    """Bring all loads to 95%, and wait until the controller has seen that."""
    scalers.create_deployments()
    for case in cases.values():
        case.good()
    # A rate is too low until its window is full.
    rate = f'rate(messages_total{{namespace="{scalers.namespace}"}}[15s])'
    prometheus.wait_for(f"min({rate}) > 90 and count({rate}) == {SIZE}")
    scalers.wait_for_answers()
    scalers.create_hpas()
    scalers.wait_for_syncs(1)


def wait_until_bad(prometheus: ScrapedPrometheus, selector: str) -> None:
    """Wait until Prometheus has NaN and gaps among the pods' samples, the reset, and the series that ended."""
    pods = f"connections{selector}"
    # NaN alone differs from itself: one pod of one workload, and all of another.
    prometheus.wait_for(f"count({pods} != {pods}) == {1 + SIZE}")
    # Four workloads: two whole ones, one without a pod's, one without any.
    prometheus.wait_for(f"count({pods}) == {3 * SIZE - 1}")
    prometheus.wait_for(f"count(resets(messages_total{selector}[1m]) > 0) == 1")
    prometheus.wait_for(f"absent(backlog{selector}) and on() count(queue_length{selector}) == 1")


def watched(scalers: Autoscalers) -> tuple[dict[str, int], dict[str, int]]:
    """Return the smallest and the largest size of each Deployment over a few syncs."""
    smallest, largest = scalers.look(), scalers.look()
    begun = {name: len(syncs) for name, syncs in scalers.syncs.items()}

    def over() -> bool:
        for name, size in scalers.look().items():
            smallest[name], largest[name] = min(smallest[name], size), max(largest[name], size)
        # The last one counted has been acted on only when the next one comes.
        return all(len(syncs) > begun[name] + BAD_SYNCS for name, syncs in scalers.syncs.items())

    scalers.cluster.wait_for(f"{BAD_SYNCS} syncs", over, 3 * PATIENCE_SECONDS, why_not=scalers.states)
    return smallest, largest


@pytest.mark.parametrize("name", NAMES)
def test_a_deployment_keeps_its_size(course: Course, name: str) -> None:
    """The fixture has waited until all of them shrink when the load truly falls."""
    assert (course.before[name], course.smallest[name], course.largest[name]) == (SIZE, SIZE, SIZE)


@pytest.mark.parametrize("name", NAMES)
def test_an_autoscaler_reports_the_missing_metric(course: Course, name: str) -> None:
    reasons = {"pods": "FailedGetPodsMetric", "object": "FailedGetObjectMetric", "external": "FailedGetExternalMetric"}
    alone = name.endswith("one-pod")
    kind = "pods" if name == "nan-on-all-pods" else name.partition("-")[0]
    assert course.active[name] == ("ValidMetricFound" if alone else reasons[kind])
