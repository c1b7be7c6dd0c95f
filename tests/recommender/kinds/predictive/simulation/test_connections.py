from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from recommender.kinds.predictive.predictive_settings import Connections, PredictiveSettings, ScaleDown
from recommender.kinds.predictive.simulation.connections import (
    ConnectionRun,
    SessionSettings,
    measure_connections,
    open_connections,
    replayed_decisions,
    simulate_connections,
)
from recommender.kinds.predictive.simulation.pods import StickyPods
from recommender.kinds.predictive.simulation.serving import FleetSettings
from recommender.kinds.predictive.simulation.session_option import SessionOptionError, parse_sessions
from tests.recommender.kinds.predictive.simulation.policy_in_the_loop import decided_by_policy

SESSIONS = SessionSettings(mean_session_seconds=600.0, limit=100, backoff_seconds=120.0)
FLEET = FleetSettings(step_seconds=60.0, startup_seconds=120.0, load_per_replica=100.0, min_replicas=1)
KEPT = math.exp(-60 / 600)


def run(arrivals: list[float], asked: list[float], sessions: SessionSettings = SESSIONS) -> ConnectionRun:
    return simulate_connections(np.array(arrivals), replayed_decisions(np.array(asked)), FLEET, sessions)


def test_open_connections_are_those_that_have_not_ended() -> None:
    found = open_connections(np.array([100.0, 50.0, np.nan, 0.0]), 60.0, SESSIONS)
    second = 100 * KEPT + 50
    # The unknown arrivals count as 50 meanwhile.
    third = second * KEPT + 50
    assert found == pytest.approx([100.0, second, np.nan, third * KEPT], nan_ok=True)


def test_in_a_steady_state_there_are_arrivals_times_the_session_length() -> None:
    found = open_connections(np.full(400, 10.0), 1.0, replace(SESSIONS, mean_session_seconds=60.0))
    assert found[-1] == pytest.approx(10 / (1 - math.exp(-1 / 60)), rel=0.01)


def test_new_connections_go_to_ready_pods_below_their_limit_only() -> None:
    # Two pods take 100 each. The third is requested in step 1 and serves three steps later, and gets all there is.
    sessions = replace(SESSIONS, mean_session_seconds=1e12, backoff_seconds=60.0)
    found = run([200.0, 30.0, 0.0, 0.0, 0.0, 20.0], [2, 3, 3, 3, 3, 3], sessions)
    assert found.ready.tolist() == [2, 0, 0, 0, 1, 1]
    assert found.refused == pytest.approx([0, 30, 30, 30, 0, 0])
    assert found.attempted == pytest.approx([200, 30, 30, 30, 30, 20])
    assert found.open == pytest.approx([200, 200, 200, 200, 230, 250])


def test_a_full_pod_is_ready_again_below_95_percent() -> None:
    pods = StickyPods(1, 100)
    assert pods.place(150.0, pods.ready(0)) == 50.0
    ready = []
    for _ in range(3):
        pods.lose(0.02)
        ready.append(bool(pods.ready(0)[0]))
    assert ready == [False, False, True]


def test_connections_are_spread_evenly_and_overflow_goes_to_pods_with_room() -> None:
    pods = StickyPods(2, 100)
    pods.place(160.0, pods.ready(0))
    pods.resize(3, step=0, lag_steps=0)
    assert pods.place(90.0, pods.ready(0)) == 0.0
    assert pods.connections.tolist() == [100.0, 100.0, 50.0]


def test_pods_are_dropped_in_the_order_of_a_replica_set() -> None:
    pods = StickyPods(2, 100)
    pods.place(200.0, pods.ready(0))
    pods.resize(4, step=0, lag_steps=0)
    pods.place(20.0, pods.ready(0))
    pods.resize(5, step=0, lag_steps=9)
    dropped = [pods.resize(size, step=1, lag_steps=0) for size in (4, 3, 2, 1)]
    # First the one that starts, then the full ones, and then the newest.
    assert dropped == [0.0, 100.0, 100.0, 10.0]


def test_connections_of_a_dropped_pod_come_back_over_the_back_off_time() -> None:
    sessions = replace(SESSIONS, mean_session_seconds=1e12)
    found = run([60.0, 0.0, 0.0, 0.0, 0.0], [2, 2, 1, 1, 1], sessions)
    assert found.cut_off == pytest.approx([0, 0, 30, 0, 0])
    assert found.attempted == pytest.approx([60, 0, 0, 15, 15])
    assert found.open == pytest.approx([60, 60, 30, 45, 60])


def test_only_judged_steps_are_summed_up() -> None:
    found = run([200.0, 30.0, 0.0, 0.0, 0.0, 20.0], [2, 3, 3, 3, 3, 3])
    measures = measure_connections(found, np.arange(6) >= 2, FLEET)
    assert measures.steps_without_endpoints == int((found.ready[2:] == 0).sum())
    assert measures.refused == pytest.approx(found.refused[2:].sum())
    assert measures.refused_ratio == pytest.approx(measures.refused / found.attempted[2:].sum())
    assert measures.replica_hours == pytest.approx(12 / 60)
    assert measure_connections(run([0.0], [1]), np.array([True]), FLEET).refused_ratio == 0.0


@given(st.lists(st.floats(0, 300), min_size=1, max_size=40), st.data())
@examples(max_examples=50)
def test_connections_are_neither_lost_nor_created(arrivals: list[float], data: st.DataObject) -> None:
    asked = data.draw(st.lists(st.integers(1, 8), min_size=len(arrivals), max_size=len(arrivals)))
    found = run(arrivals, [float(each) for each in asked])
    assert (found.refused <= found.attempted + 1e-9).all()
    assert (found.open <= found.asked * 100 + 1e-6).all()
    placed = found.attempted - found.refused
    before = np.concatenate([[0.0], found.open[:-1]]) * KEPT - found.cut_off + placed
    assert found.open == pytest.approx(before, abs=1e-6)


@given(st.lists(st.floats(0, 50), min_size=1, max_size=30))
@examples(max_examples=20)
def test_with_room_for_all_the_fleet_holds_all_open_connections(arrivals: list[float]) -> None:
    found = run(arrivals, [100.0] * len(arrivals))
    assert found.refused.sum() == 0
    assert found.open == pytest.approx(open_connections(np.array(arrivals), 60.0, SESSIONS))


def test_the_policy_that_observes_pods_refuses_fewer_connections() -> None:
    # Sessions of four hours: a full pod stays full for long, while the sum of all limits says that there is room.
    sessions = replace(SESSIONS, mean_session_seconds=4 * 3600.0, backoff_seconds=60.0)
    noise = np.random.default_rng(1).uniform(0.2, 1.8, 600)
    arrivals = 2.5 * (1 + 0.3 * np.sin(np.arange(600) / 120 * 2 * np.pi)) * noise
    arrivals[0] = 600.0
    load = open_connections(arrivals, 60.0, sessions)
    totals = PredictiveSettings(headroom_ratio=0.0, scale_down=ScaleDown(0.05))
    slots = replace(totals, connections=Connections(100, metric="connections"))
    found = []
    for settings in (totals, slots):
        decide = decided_by_policy(settings, load, load, "reactive", FLEET)
        run_of_it = simulate_connections(arrivals, decide, FLEET, sessions)
        found.append(measure_connections(run_of_it, np.arange(600) >= 60, FLEET))
    assert found[1].refused < 0.3 * found[0].refused
    assert found[1].steps_without_endpoints < 0.3 * found[0].steps_without_endpoints
    assert found[1].replica_hours < 1.05 * found[0].replica_hours


def test_pods_that_start_during_a_long_step_are_not_requested_twice() -> None:
    fleet = replace(FLEET, step_seconds=600.0, startup_seconds=60.0)
    arrivals = np.array([200.0] + [40.0] * 6)
    load = open_connections(arrivals, 600.0, replace(SESSIONS, mean_session_seconds=1e12))
    policy = PredictiveSettings(headroom_ratio=0.0, connections=Connections(100, metric="connections"))
    decide = decided_by_policy(policy, load, load, "reactive", fleet)
    found = simulate_connections(arrivals, decide, fleet, replace(SESSIONS, mean_session_seconds=1e12))
    assert (found.asked <= load / 100 + 2).all()


def test_unknown_loads_keep_the_size() -> None:
    load = np.array([np.nan, 500.0, np.nan, np.nan])
    decide = decided_by_policy(PredictiveSettings(headroom_ratio=0.0), load, load, "reactive", FLEET)
    found = simulate_connections(np.zeros(4), decide, FLEET, SESSIONS)
    assert found.asked.tolist() == [1, 5, 5, 5]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mean-session=10m", SessionSettings(600.0, 100.0, 30.0)),
        ("mean-session=90s, back-off=2m, limit=25000", SessionSettings(90.0, 25000.0, 120.0)),
    ],
)
def test_the_sessions_option_is_parsed(text: str, expected: SessionSettings) -> None:
    assert parse_sessions(text, load_per_replica=100.0) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown key ''"),
        ("limit=5", "mean-session is missing: write mean-session=10m"),
        ("mean-sesion=10m", "did you mean mean-session?"),
        ("mean-session=10", "write a duration above 0"),
        ("mean-session=0s", "write a duration above 0"),
        ("mean-session=-5m", "write a duration above 0"),
        ("mean-session=1m,mean-session=2m", "mean-session is given twice"),
        ("mean-session=1m,limit=nan", "write how many connections"),
        ("mean-session=1m,limit=0", "write how many connections"),
        ("mean-session=1m,back-off=soon", "back-off is 'soon'"),
    ],
)
def test_an_invalid_sessions_option_is_an_error_with_a_repair(text: str, message: str) -> None:
    with pytest.raises(SessionOptionError, match=re.escape(message)):
        parse_sessions(text, load_per_replica=100.0)
