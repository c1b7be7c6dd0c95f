"""Long-lived connections: the problems that users of autoscalers for websockets had; no process is needed for them."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from recommender.decisions.loads.load_inputs import PodConnections
from recommender.kinds.predictive.forecast import ForecastTask
from recommender.kinds.predictive.history import of_one_series
from recommender.kinds.predictive.models.curves import POLYNOMIAL
from recommender.kinds.predictive.policy.load_situation import LoadForecast, LoadSituation
from recommender.kinds.predictive.policy.memory import PolicyMemory
from recommender.kinds.predictive.policy.sizing import size_of
from recommender.kinds.predictive.predictive_settings import Connections, ModelName, PredictiveSettings, ScaleDown
from recommender.kinds.predictive.simulation.connections import (
    SessionSettings,
    measure_connections,
    open_connections,
    simulate_connections,
)
from recommender.kinds.predictive.simulation.serving import FleetSettings
from tests.recommender.kinds.predictive.simulation.policy_in_the_loop import decided_by_policy

NOW = 1_800_000_000.0
CHAT = PredictiveSettings(
    load_per_replica=25_000,
    horizon_seconds=120.0,
    headroom_ratio=0.0,
    scale_down=ScaleDown(0.05),
    connections=Connections(25_000, metric="websocket_connections"),
)


def test_connections_are_the_load_whatever_the_cpu_usage_is__autoscaler_3908() -> None:
    found = size_of(CHAT, LoadSituation(180_000.0, LoadForecast(200_000.0, 210_000.0, "quantile")), PolicyMemory(), NOW)
    assert found.steps[0].step == "quantile/forecast"
    assert found.steps[0].detail == "ceil(210000 / 25000), in 120 s"
    assert found.replicas == 9


def test_full_pods_need_new_ones_although_the_sum_has_room__aks_app_routing_operator_4() -> None:
    # Nine pods are at their limit, and the tenth, of after the last change, has a tenth of its room left. The sum of
    # all limits is 250,000.
    pods = (
        *(PodConnections(24_500.0, is_ready=False, name=f"old-{number}") for number in range(9)),
        PodConnections(22_500.0, is_ready=True, name="new"),
    )
    situation = LoadSituation(243_000.0, LoadForecast(247_000.0, 247_000.0, "quantile"), pods)
    by_sum = size_of(replace(CHAT, connections=None), situation, PolicyMemory(), NOW)
    by_room = size_of(CHAT, situation, PolicyMemory(), NOW)
    assert (by_sum.replicas, by_room.replicas, by_room.binding) == (10, 11, "connections")
    # While the eleventh starts, nobody asks for a twelfth.
    starting = (*pods, PodConnections(None, is_ready=False, name="starting", unready_seconds=10.0))
    again = size_of(CHAT, replace(situation, pods=starting), by_room.memory, NOW + 10)
    assert again.replicas == 11


def test_a_limit_of_20_needs_no_tuned_windows__omi_5595() -> None:
    fleet = FleetSettings(step_seconds=10.0, startup_seconds=60.0, load_per_replica=20.0, min_replicas=1)
    sessions = SessionSettings(mean_session_seconds=600.0, limit=20.0)
    seconds = np.arange(0, 7200, 10.0)
    arrivals = np.random.default_rng(5).poisson(2 + 1.5 * np.sin(seconds / 7200 * 2 * math.pi)).astype(np.float64)
    load = open_connections(arrivals, 10.0, sessions)
    settings = PredictiveSettings(scale_down=ScaleDown(0.05), connections=Connections(20, metric="connections"))
    decide = decided_by_policy(settings, load, 1.1 * load, "headroom", fleet)
    run = simulate_connections(arrivals, decide, fleet, sessions)
    late = np.arange(len(seconds)) >= 60
    assert measure_connections(run, late, fleet).refused_ratio < 0.001
    # Never more than one pod in ten seconds, of up to a dozen: nothing was told to be careful.
    assert np.diff(run.asked[late]).min() >= -1


def test_capacity_goes_down_no_faster_than_sessions_end__omi_5595() -> None:
    settings = replace(CHAT, scale_down=ScaleDown(0.05, 0.0, 1800.0), connections=None)
    memory, sizes = PolicyMemory(), []
    for step in range(60):
        load = 2_500_000.0 if step == 0 else 250_000.0
        sized = size_of(settings, LoadSituation(load, LoadForecast(load, load, "reactive")), memory, NOW + 10 * step)
        memory = sized.memory
        sizes.append(sized.replicas or 0)
    assert sizes[-1] == math.ceil(100 * math.exp(-590 / 1800))
    assert all(after >= before * math.exp(-10 / 1800) - 1 for before, after in pairwise(sizes))


def test_a_missing_metric_of_a_pod_freezes_nothing__kubernetes_61007() -> None:
    settings = replace(CHAT, scale_down=ScaleDown(None, 0.0), headroom_ratio=0.2)
    known = (PodConnections(20_000.0, is_ready=True), PodConnections(20_000.0, is_ready=True))
    one_missing = (PodConnections(20_000.0, is_ready=True), PodConnections(None, is_ready=True))

    def size(load: float, pods: tuple[PodConnections, ...] | None, forecast: LoadForecast | None) -> int | None:
        return size_of(settings, LoadSituation(load, forecast, pods), PolicyMemory(), NOW).replicas

    forecast = LoadForecast(40_000.0, 40_000.0, "quantile")
    assert size(40_000.0, known, forecast) == 2
    # The pod without a sample counts as full, so that 5,000 free slots are left for a reserve of 8,000.
    assert size(40_000.0, one_missing, forecast) == 3
    # Without any sample of a pod, and without a forecast, size follows the sum in both directions.
    assert [size(load, None, None) for load in (20_000.0, 40_000.0, 100_000.0)] == [1, 2, 5]


def test_noise_does_not_double_the_fleet__websocket_hpa_45680() -> None:
    # The article's own way: five samples at 10 s through a parabola, 120 s ahead.
    article = PredictiveSettings(load_per_replica=1000, horizon_seconds=120.0, model=ModelName.POLYNOMIAL)
    situation = LoadSituation(21_700.0, LoadForecast(45_680.0, 45_680.0, "polynomial"))
    capped = size_of(replace(article, max_growth=1.5), situation, PolicyMemory(), NOW)
    assert (capped.replicas, capped.binding) == (33, "maxGrowth")
    assert size_of(article, situation, PolicyMemory(), NOW).replicas == 44
    # Here the same noise, of 2%, is fitted through more samples.
    noisy = 21_000 * (1 + 0.02 * np.random.default_rng(7).standard_normal(600))
    origins = np.arange(100, 600)
    task = ForecastTask(lead_seconds=120.0, window_seconds=10.0)
    found = POLYNOMIAL.forecast(None, of_one_series(0.0, 10.0, noisy), origins, task)
    assert found.median.max() < 1.5 * 21_000
    naive = [float(np.polyval(np.polyfit(np.arange(-4, 1), noisy[i - 4 : i + 1], 2), 12)) for i in origins]
    assert max(naive) > 2 * 21_000


def test_the_number_of_replicas_does_not_change_the_forecast__arxiv_2604_19705() -> None:
    situation = LoadSituation(180_000.0, LoadForecast(200_000.0, 210_000.0, "quantile"))
    settings = replace(CHAT, scale_down=None)
    sizes = {
        size_of(settings, replace(situation, current_replicas=replicas), PolicyMemory(), NOW).replicas
        for replicas in (1, 9, 500)
    }
    assert sizes == {9}
