"""HPAs with `predicted_load` beside a metric of the current load: as an External metric, and on the target itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.e2e.recommender.waves import Wave, needed, predicting
from tests.e2e.support.autoscalers import Autoscaler, Autoscalers, external_metric, object_metric
from tests.e2e.support.figures import state
from tests.e2e.support.installed import installed_adapter, values_for_recommendations
from tests.e2e.support.recommenders import Workload
from tests.e2e.support.scraping import reconfigured, with_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.recommender.waves import Predicting
    from tests.support.prometheus import ScrapedPrometheus
    from tests.support.recommenders import Recommender

__all__ = ["predicting", "state"]

pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(300)]

METRIC: Final = "predicted_load"
AHEAD: Final = ("by-external", "by-object")
ALONE: Final = "by-present-load"
PER_REPLICA: Final = 100.0
BASE: Final = 250.0
CREST: Final = 690.0
"""The load that seven replicas carry: the wave exceeds it only after the HPAs have scaled."""
LOW: Final = 120.0
PER_SECOND: Final = 12.0
AHEAD_OF_THE_WAVE: Final = needed(CREST, PER_REPLICA) + 1
AT_ONCE: Final = {
    direction: {
        "stabilizationWindowSeconds": 0,
        "tolerance": "0",
        "policies": [{"type": "Pods", "value": 20, "periodSeconds": 1}],
    }
    for direction in ("scaleUp", "scaleDown")
}
"""A behaviour without limits on the speed; by default, at most four pods or a doubling are added in 15 s."""


@pytest.fixture(scope="module")
def adapter(cluster: Cluster, prometheus: ScrapedPrometheus) -> Iterator[None]:
    with installed_adapter(cluster, values_for_recommendations(prometheus)):
        yield


def test_hpas_scale_before_the_wave_and_go_on_without_the_predictor(
    cluster: Cluster,
    namespace: str,
    adapter: None,  # noqa: ARG001 - it is only to run
    prometheus: ScrapedPrometheus,
    predicting: Predicting,
    state: Callable[[str, str], None],
) -> None:
    wave = Wave(BASE)
    scalers = autoscalers(cluster, namespace)
    scalers.create_deployments()
    load = f'sum(queue_length{{namespace="{namespace}"}})'
    settings = {
        "load": load,
        "loadPerReplica": PER_REPLICA,
        "horizon": "30s",
        "hpaSyncPeriod": "4s",
        "scaleDown": {"window": "0s"},
    }
    targets = ", ".join(Workload(cluster, namespace, name).reference for name in AHEAD)
    predicting.configure("chat", settings, f"targets: [{targets}]")
    program = predicting.start()
    address = program.address(plain=True)
    scrape = {"job_name": METRIC, "scrape_interval": "1s", "static_configs": [{"targets": [address]}]}
    predicting.stack.enter_context(reconfigured(prometheus.prometheus, lambda before: with_job(before, scrape)))
    begin = wave.rise(PER_SECOND, CREST)
    predicting.export("queue_length", wave, queue="chat")
    scalers.wait_for_answers()
    scalers.create_hpas()
    reached = followed(scalers, begin)
    assert scalers.sizes()[ALONE] < AHEAD_OF_THE_WAVE
    # At this rate the current load alone would have asked for that size now.
    crossing = ((AHEAD_OF_THE_WAVE - 1) * PER_REPLICA - BASE) / PER_SECOND
    detail = program.items()["chat"]["steps"][0]["detail"]
    state("HPAs ahead of a wave", f"{figures(reached, crossing)}; forecast {detail}")

    # The forecast goes on falling for a while, below the load that is there, of which the larger counts.
    wave.stand(LOW)
    low = needed(LOW, PER_REPLICA)
    cluster.wait_for("a lower forecast", lambda: expects_less(program, low))
    # Scrapes and syncs carry the forecast to each HPA at another moment.
    cluster.wait_for("all at the lower load", lambda: set(scalers.sizes().values()) == {low}, why_not=scalers.states)
    scalers.wait_for_syncs(1)
    assert scalers.sizes() == dict.fromkeys([*AHEAD, ALONE], low)

    program.process.kill()
    cluster.wait_for("the end of the series", lambda: not any(has_value(scalers, name) for name in AHEAD))
    wave.stand(BASE)
    high = needed(BASE, PER_REPLICA)
    cluster.wait_for("all at the load", lambda: set(scalers.look().values()) == {high}, why_not=scalers.states)
    wave.stand(LOW)
    cluster.wait_for("the one that knows", lambda: scalers.look()[ALONE] == low, why_not=scalers.states)
    scalers.wait_for_syncs(1)
    assert scalers.sizes() == {**dict.fromkeys(AHEAD, high), ALONE: low}
    # What is only published is written by nobody else.
    assert [Workload(cluster, namespace, name).writes() for name in AHEAD] == [[], []]


def autoscalers(cluster: Cluster, namespace: str) -> Autoscalers:
    """Return HPAs that follow the current load, two of them also the predicted load."""
    present = external_metric("queue_length", {"queue": "chat"}, averageValue=str(int(PER_REPLICA)))
    metrics: dict[str, tuple[dict[str, Any], ...]] = {
        AHEAD[0]: (predicted_of(AHEAD[0]), present),
        AHEAD[1]: (object_metric(METRIC, "Deployment", AHEAD[1], averageValue=str(int(PER_REPLICA))), present),
        ALONE: (present,),
    }
    size = needed(BASE, PER_REPLICA)
    ours = [
        Autoscaler(namespace, name, first, size, maximum=20, behaviour=AT_ONCE, further=tuple(rest))
        for name, (first, *rest) in metrics.items()
    ]
    return Autoscalers(cluster, namespace, *ours)


def predicted_of(name: str) -> dict[str, Any]:
    labels = {"target_kind": "Deployment", "target_name": name}
    return external_metric(METRIC, labels, averageValue=str(int(PER_REPLICA)))


def followed(scalers: Autoscalers, begin: float) -> dict[str, float]:
    """Wait until the HPAs with a forecast are ahead of the wave; return how long after its beginning that was."""
    reached: dict[str, float] = {}

    def all_reached() -> bool:
        for name, size in scalers.sizes().items():
            if size >= AHEAD_OF_THE_WAVE:
                reached.setdefault(name, time.time() - begin)
        return reached.keys() >= set(AHEAD)

    scalers.cluster.wait_for("sizes ahead of the wave", all_reached, why_not=scalers.states)
    return reached


def figures(reached: dict[str, float], crossing: float) -> str:
    return ", ".join(
        f"{name} {crossing - seconds:.1f} s before the load asked for it" for name, seconds in reached.items()
    )


def has_value(scalers: Autoscalers, name: str) -> bool:
    """Return whether the adapter answers the HPA's request for the forecast."""
    reply = scalers.ask(scalers.all[name])
    return reply.status == 200 and bool(reply.document["items"])


def expects_less(program: Recommender, size: int) -> bool:
    """Return whether fewer replicas would carry the expected load."""
    load = program.items()["chat"]["load"]
    return load is not None and needed(load["quantiles"]["0.5"], PER_REPLICA) < size
