"""The real controller, fed by the real adapter, decides what `recommender/hpa` computes; to zero and back, too.

All of it runs on one installed release, with a sync of 5 s, a third of Kubernetes's default.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from tests.e2e.autoscalers import (
    QUICK,
    Autoscaler,
    Autoscalers,
    external_metric,
    object_metric,
    pods_metric,
    service,
)
from tests.e2e.controlplane.pod_metrics import shared
from tests.e2e.installed import InstalledAdapter, installed_adapter, namespace_of_its_own, values_for
from tests.e2e.replay import Look, Verdict, look, model_of, replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.support.prometheus import ScrapedPrometheus

# The fixture of this module plays for minutes, by the controller's clock.
pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(600)]

SYNCS: Final = 31
_SYNC_SECONDS: Final = 15.0
"""How long a sync may take to come, on a machine that is busy with other things."""

# Windows and periods end in the middle between two syncs of 5 s, so that no decision hangs on milliseconds.
BEHAVIOUR_PODS: Final = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "tolerance": "50m",
        "policies": [
            {"type": "Pods", "value": 3, "periodSeconds": 12},
            {"type": "Percent", "value": 50, "periodSeconds": 12},
        ],
    },
    "scaleDown": {"stabilizationWindowSeconds": 12, "policies": [{"type": "Pods", "value": 2, "periodSeconds": 12}]},
}
BEHAVIOUR_SERVICE: Final = {
    "scaleUp": {
        "stabilizationWindowSeconds": 7,
        "selectPolicy": "Min",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 7},
            {"type": "Percent", "value": 100, "periodSeconds": 7},
        ],
    },
    "scaleDown": {
        "stabilizationWindowSeconds": 0,
        "tolerance": "200m",
        "policies": [{"type": "Percent", "value": 50, "periodSeconds": 7}],
    },
}
BEHAVIOUR_QUEUE: Final = {
    "scaleUp": {"policies": [{"type": "Percent", "value": 200, "periodSeconds": 7}]},
    "scaleDown": {
        "stabilizationWindowSeconds": 7,
        "selectPolicy": "Min",
        "policies": [
            {"type": "Percent", "value": 30, "periodSeconds": 12},
            {"type": "Pods", "value": 3, "periodSeconds": 7},
        ],
    },
}


@dataclass(frozen=True, slots=True)
class Script:
    """An autoscaler, the total load in each sync, and how that load becomes series."""

    autoscaler: Autoscaler
    loads: tuple[float, ...]
    export: Callable[[float], None]


def held(*steps: tuple[float, int]) -> tuple[float, ...]:
    """Return each load as many times as it is held."""
    return tuple(load for load, syncs in steps for _ in range(syncs))


LOADS_PODS: Final = held((200, 2), (640, 6), (208, 8), (320, 3), (336, 2), (1500, 4), (90, 7))
LOADS_SERVICE: Final = held((100, 2), (260, 1), (100, 3), (190, 5), (85, 5), (250, 4), (105, 3), (40, 6), (130, 3))
LOADS_DEPLOYMENT: Final = held((20, 3), (200, 5), (108, 8), (95, 4), (300, 6), (10, 6))
LOADS_QUEUE: Final = held((25, 2), (170, 5), (30, 1), (180, 3), (90, 6), (20, 8), (65, 7))


@pytest.fixture(scope="module")
def adapter(cluster: Cluster, prometheus: ScrapedPrometheus) -> Iterator[InstalledAdapter]:
    """One pod, so that whoever looks beside the controller is answered from the same snapshot."""
    with installed_adapter(cluster, values_for(prometheus)) as adapter:
        yield adapter


@pytest.fixture(scope="module")
def verdicts(cluster: Cluster, adapter: InstalledAdapter, pod_metrics: PodMetrics) -> Iterator[dict[str, Verdict]]:
    """What came of all scripts, which run beside each other."""
    assert adapter.answers()
    with namespace_of_its_own(cluster, "model") as namespace:
        scripts = scripts_in(namespace, pod_metrics)
        scalers = Autoscalers(cluster, namespace, *(script.autoscaler for script in scripts))
        cluster.apply(service(namespace, "api"))
        scalers.create_deployments()
        for script in scripts:
            script.export(script.loads[0])
        scalers.wait_for_answers()
        scalers.create_hpas()
        looks = play(scalers, scripts)
        yield {
            name: replay(name, model_of(scalers.hpa(name)), scalers.syncs[name][: SYNCS + 1], looks)
            for name in scalers.all
        }
        pod_metrics.forget_pods("connections", namespace, "app=web")


def scripts_in(namespace: str, pod_metrics: PodMetrics) -> list[Script]:
    """Return a script for each kind of metric; `backlog` follows the older rules, without a behaviour."""

    def series(metric: str, **labels: str) -> Callable[[float], None]:
        return lambda load: pod_metrics.set(metric, load, namespace=namespace, **labels)

    web = Autoscaler(namespace, "web", pods_metric("connections", "100"), 2, 1, 12, BEHAVIOUR_PODS)
    described = object_metric("requests_in_flight", "Service", "api", value="100")
    api = Autoscaler(namespace, "api", described, 2, 2, 12, BEHAVIOUR_SERVICE)
    described = object_metric("backlog", "Deployment", "worker", averageValue="10")
    worker = Autoscaler(namespace, "worker", described, 2, 1, 24, None)
    mail = external_metric("queue_length", {"queue": "mail"}, averageValue="10")
    sender = Autoscaler(namespace, "sender", mail, 2, 1, 15, BEHAVIOUR_QUEUE)
    return [
        Script(web, LOADS_PODS, lambda load: pod_metrics.of_pods("connections", namespace, "app=web", shared(load))),
        Script(api, LOADS_SERVICE, series("requests_in_flight", service="api")),
        Script(worker, LOADS_DEPLOYMENT, series("backlog", deployment="worker")),
        Script(sender, LOADS_QUEUE, series("queue_length", queue="mail")),
    ]


def play(scalers: Autoscalers, scripts: list[Script]) -> list[Look]:
    """Give each script its next load as soon as a sync was seen, so that it has settled when the next one comes."""
    looks: list[Look] = []
    end = time.monotonic() + (SYNCS + 1) * _SYNC_SECONDS
    while min(map(len, scalers.syncs.values())) < SYNCS + 1:
        looks.append(look(scalers))
        scalers.take_syncs_in()
        for script in scripts:
            passed = len(scalers.syncs[script.autoscaler.name])
            script.export(script.loads[min(passed, len(script.loads) - 1)])
        assert time.monotonic() < end, f"the syncs do not come: {scalers.states()}"
    return [*looks, look(scalers)]


@pytest.mark.parametrize("name", ["web", "api", "worker", "sender"])
def test_the_model_decides_each_sync_as_the_controller_does(verdicts: dict[str, Verdict], name: str) -> None:
    """Tolerated is one race alone: a sync during which what it reads is changing may have seen either (`replay`)."""
    verdict = verdicts[name]
    assert verdict.syncs >= SYNCS
    # Free of the race are nearly all; a machine that is busy with other things may make it some fewer.
    assert verdict.certain >= SYNCS * 2 // 3
    assert any(after > before for before, after in verdict.decisions)
    sizes = {after for _, after in verdict.decisions}
    assert len(sizes) >= 4


def test_every_kind_of_limit_had_a_part(verdicts: dict[str, Verdict]) -> None:
    """The scripts lead the controller through all of its reasons, or agreement would say little."""
    reasons = {reason for verdict in verdicts.values() for reason in verdict.reasons}
    limits = {"ScaleUpLimit", "ScaleDownLimit", "TooManyReplicas", "TooFewReplicas", "DesiredWithinRange"}
    assert reasons >= limits | {"ScaleUpStabilized", "ScaleDownStabilized"}


def test_it_scales_to_zero_and_back(
    cluster: Cluster, namespace: str, adapter: InstalledAdapter, pod_metrics: PodMetrics
) -> None:
    """From zero only a policy in Pods leads up: a percentage of nothing is nothing."""
    assert adapter.answers()
    up = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 10, "periodSeconds": 15}]}
    metric = external_metric("queue_length", {"queue": "orders"}, averageValue="10")
    scalers = Autoscalers(
        cluster, namespace, Autoscaler(namespace, "sleeper", metric, 1, 0, 8, {**QUICK, "scaleUp": up})
    )
    scalers.create_deployments()
    pod_metrics.set("queue_length", 25, namespace=namespace, queue="orders")
    scalers.wait_for_answers()
    scalers.create_hpas()
    scalers.wait_for_sizes(sleeper=3)
    pod_metrics.set("queue_length", 0, namespace=namespace, queue="orders")
    scalers.wait_for_sizes(sleeper=0)
    scalers.wait_for_syncs(2)
    assert scalers.look() == {"sleeper": 0}
    pod_metrics.set("queue_length", 41, namespace=namespace, queue="orders")
    scalers.wait_for_sizes(sleeper=5)
