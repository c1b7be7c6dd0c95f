"""The real controller with the real adapter decides what `adapter/foundation/hpa` computes, also to zero and back.

All of it runs on one installed release, with a sync of 4 s, about a quarter of Kubernetes's default.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from adapter.foundation.hpa.documents import spec_of
from tests.e2e.controlplane.pod_metrics import shared
from tests.e2e.hpa.replay import Look, Verdict, look, replay
from tests.e2e.support.autoscalers import (
    QUICK,
    Autoscaler,
    Autoscalers,
    external_metric,
    object_metric,
    pods_metric,
    service,
)
from tests.e2e.support.installed import InstalledAdapter, installed_adapter, namespace_of_its_own, values_for
from tests.support.waiting import rounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.support.prometheus import ScrapedPrometheus

# The fixture of this module plays for minutes, by the controller's clock.
pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(600)]

SYNCS: Final = 31
MODELLED: Final = ("web", "api", "worker", "sender")
_PAUSE_SECONDS: Final = 0.1
"""The pause between two observations, which are expensive; what a sync has seen is settled seconds before the sync."""
_SYNC_SECONDS: Final = 15.0
"""How long a sync may take to come on a busy machine."""

# Windows and periods end in the middle between two syncs of 4 s, so that no decision hangs on milliseconds.
BEHAVIOUR_PODS: Final = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "tolerance": "50m",
        "policies": [
            {"type": "Pods", "value": 3, "periodSeconds": 10},
            {"type": "Percent", "value": 50, "periodSeconds": 10},
        ],
    },
    "scaleDown": {"stabilizationWindowSeconds": 10, "policies": [{"type": "Pods", "value": 2, "periodSeconds": 10}]},
}
BEHAVIOUR_SERVICE: Final = {
    "scaleUp": {
        "stabilizationWindowSeconds": 6,
        "selectPolicy": "Min",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 6},
            {"type": "Percent", "value": 100, "periodSeconds": 6},
        ],
    },
    "scaleDown": {
        "stabilizationWindowSeconds": 0,
        "tolerance": "200m",
        "policies": [{"type": "Percent", "value": 50, "periodSeconds": 6}],
    },
}
BEHAVIOUR_QUEUE: Final = {
    "scaleUp": {"policies": [{"type": "Percent", "value": 200, "periodSeconds": 6}]},
    "scaleDown": {
        "stabilizationWindowSeconds": 6,
        "selectPolicy": "Min",
        "policies": [
            {"type": "Percent", "value": 30, "periodSeconds": 10},
            {"type": "Pods", "value": 3, "periodSeconds": 6},
        ],
    },
}


@dataclass(frozen=True, slots=True)
class Script:
    """An autoscaler, the total load in each sync, and how this load becomes series."""

    autoscaler: Autoscaler
    loads: tuple[float, ...]
    export: Callable[[float], None]


def held(*steps: tuple[float, int]) -> tuple[float, ...]:
    """Return each load as many times as it is held."""
    return tuple(load for load, syncs in steps for _ in range(syncs))


LOADS_PODS: Final = held((200, 2), (640, 6), (208, 8), (320, 3), (336, 2), (1500, 4), (90, 7))
LOADS_SERVICE: Final = held((100, 2), (260, 1), (100, 3), (190, 5), (85, 5), (250, 4), (105, 3), (40, 6), (130, 3))
LOADS_DEPLOYMENT: Final = held((20, 3), (200, 5), (108, 8), (95, 4), (300, 6), (10, 6))
BEHAVIOUR_SLEEPER: Final = {
    **QUICK,
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "policies": [{"type": "Pods", "value": 10, "periodSeconds": 15}],
    },
}
LOADS_SLEEPER: Final = held((25, 8), (0, 12), (41, 12))
LOADS_QUEUE: Final = held((25, 2), (170, 5), (30, 1), (180, 3), (90, 6), (20, 8), (65, 7))


@pytest.fixture(scope="module")
def adapter(cluster: Cluster, prometheus: ScrapedPrometheus) -> Iterator[InstalledAdapter]:
    """Yield an adapter of one pod, so that observers and the controller get answers from the same snapshot."""
    with installed_adapter(cluster, values_for(prometheus)) as adapter:
        yield adapter


@dataclass(frozen=True, slots=True)
class Played:
    """The results of all scripts."""

    verdicts: dict[str, Verdict]
    """The verdicts on scripts that the model decides too."""
    sizes_of_sleeper: tuple[int, ...]
    """Each size that the Deployment had, one after the other."""


@pytest.fixture(scope="module")
def played(cluster: Cluster, adapter: InstalledAdapter, pod_metrics: PodMetrics) -> Iterator[Played]:
    """Run all scripts at the same time."""
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
        verdicts = {
            name: replay(name, spec_of(scalers.hpa(name)), scalers.syncs[name][: SYNCS + 1], looks) for name in MODELLED
        }
        sizes = (one.seen["sleeper"].workload.spec_replicas for one in looks)
        yield Played(verdicts, tuple(size for size, _ in itertools.groupby(sizes)))
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
    orders = external_metric("queue_length", {"queue": "orders"}, averageValue="10")
    sleeper = Autoscaler(namespace, "sleeper", orders, 1, 0, 8, BEHAVIOUR_SLEEPER)
    return [
        Script(web, LOADS_PODS, lambda load: pod_metrics.of_pods("connections", namespace, "app=web", shared(load))),
        Script(api, LOADS_SERVICE, series("requests_in_flight", service="api")),
        Script(worker, LOADS_DEPLOYMENT, series("backlog", deployment="worker")),
        Script(sender, LOADS_QUEUE, series("queue_length", queue="mail")),
        Script(sleeper, LOADS_SLEEPER, series("queue_length", queue="orders")),
    ]


def play(scalers: Autoscalers, scripts: list[Script]) -> list[Look]:
    """Give each script its next load as soon as a sync was seen, so that it is settled when the next one comes."""
    looks: list[Look] = []
    for _ in rounds(_PAUSE_SECONDS, (SYNCS + 1) * _SYNC_SECONDS):
        looks.append(look(scalers))
        scalers.take_syncs_in()
        if min(map(len, scalers.syncs.values())) > SYNCS:
            return [*looks, look(scalers)]
        for script in scripts:
            passed = len(scalers.syncs[script.autoscaler.name])
            script.export(script.loads[min(passed, len(script.loads) - 1)])
    raise AssertionError(f"the syncs do not come: {scalers.states()}")


@pytest.mark.parametrize("name", MODELLED)
def test_the_model_decides_each_sync_as_the_controller_does(played: Played, name: str) -> None:
    """Only one race is tolerated: a sync during which its inputs change may have seen either state (`replay`)."""
    verdict = played.verdicts[name]
    assert verdict.syncs >= SYNCS
    # Free of the race are nearly all; a machine that is busy with other things may make it some fewer.
    assert verdict.certain >= SYNCS * 2 // 3
    assert any(after > before for before, after in verdict.decisions)
    sizes = {after for _, after in verdict.decisions}
    assert len(sizes) >= 4


def test_every_kind_of_limit_occurred(played: Played) -> None:
    """The scripts lead the controller through all of its reasons; without that, agreement would mean little."""
    reasons = {reason for verdict in played.verdicts.values() for reason in verdict.reasons}
    limits = {"ScaleUpLimit", "ScaleDownLimit", "TooManyReplicas", "TooFewReplicas", "DesiredWithinRange"}
    assert reasons >= limits | {"ScaleUpStabilized", "ScaleDownStabilized"}


def test_it_scales_to_zero_and_back(played: Played) -> None:
    """From zero, only a policy in Pods can scale up: a percentage of zero is zero."""
    assert played.sizes_of_sleeper == (1, 3, 0, 5)
