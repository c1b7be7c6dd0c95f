from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import count, groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.hotspots.hot_nodes import HeatState, advance
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import HotspotSettings
from tests.adapter.nodes.extender.snapshots import NAN, at, load, snapshot

CPU, MEMORY = LoadResource.CPU, LoadResource.MEMORY
SETTINGS = HotspotSettings({CPU: 0.8}, rounds=3, clear=2)
HOT, COLD = 0.9, 0.5


def after(state: HeatState, averages: dict[str, float], number: int) -> HeatState:
    """Return the state after a refresh with these averages."""
    loads = snapshot(tuple(averages), load(CPU, list(averages.values())))
    return advance(state, at(loads, 30.0 * number), SETTINGS)


def seen(averages: list[float]) -> tuple[list[bool], list[int]]:
    """Return whether one node was hot after each refresh, and for how many rounds."""
    state, is_hot, rounds = HeatState(), [], []
    for number, average in enumerate(averages):
        state = after(state, {"node-1": average}, number)
        is_hot.append(bool(state.resources[CPU].is_hot[0]))
        rounds.append(int(state.resources[CPU].rounds[0]))
    return is_hot, rounds


@pytest.mark.parametrize(
    ("averages", "is_hot", "rounds"),
    [
        ([HOT, HOT, HOT, HOT], [0, 0, 1, 1], [1, 2, 3, 4]),
        ([HOT, HOT, COLD, HOT, HOT], [0, 0, 0, 0, 0], [1, 2, 0, 1, 2]),
        ([0.8, 0.8, 0.8], [0, 0, 0], [0, 0, 0]),
        ([HOT, HOT, HOT, 0.8, 0.8], [0, 0, 1, 1, 0], [1, 2, 3, 4, 0]),
        ([HOT, HOT, HOT, COLD, HOT, COLD, COLD], [0, 0, 1, 1, 1, 1, 0], [1, 2, 3, 4, 5, 6, 0]),
        ([HOT, HOT, HOT, COLD, COLD, HOT], [0, 0, 1, 1, 0, 0], [1, 2, 3, 4, 0, 1]),
        ([HOT, HOT, NAN, HOT], [0, 0, 0, 1], [1, 2, 2, 3]),
        ([HOT, HOT, HOT, NAN, COLD, NAN, COLD], [0, 0, 1, 1, 1, 1, 0], [1, 2, 3, 3, 4, 4, 0]),
    ],
)
def test_a_node_is_hot_from_enough_rounds_above_the_limit_to_enough_rounds_below(
    averages: list[float], is_hot: list[int], rounds: list[int]
) -> None:
    assert seen(averages) == ([bool(value) for value in is_hot], rounds)


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_too_few_rounds_do_not_change_whether_a_node_is_hot(above: list[bool]) -> None:
    is_hot, _ = seen([HOT if value else COLD for value in above])
    longest = max((len(list(run)) for value, run in groupby(above) if value), default=0)
    assert any(is_hot) is (longest >= SETTINGS.rounds)
    for before, now, end in zip(is_hot, is_hot[1:], count(2)):
        if before and not now:
            assert not any(above[end - SETTINGS.clear : end])


def test_a_node_keeps_its_rounds_when_others_are_added_and_removed() -> None:
    refreshes = [{"b": HOT}, {"a": COLD, "b": HOT}, {"a": HOT, "b": HOT, "c": HOT}, {"b": HOT, "c": HOT}]
    state = reduce(lambda state, each: after(state, each[1], each[0]), enumerate(refreshes), HeatState())
    assert (state.nodes, state.resources[CPU].rounds.tolist()) == (("b", "c"), [4, 2])
    assert state.resources[CPU].is_hot.tolist() == [True, False]


def test_a_new_node_beside_a_hot_one_starts_cold() -> None:
    refreshes = [{"a": HOT}] * 3 + [{"a": HOT, "b": HOT}]
    state = reduce(lambda state, each: after(state, each[1], each[0]), enumerate(refreshes), HeatState())
    assert state.resources[CPU].rounds.tolist() == [4, 1]
    assert state.resources[CPU].is_hot.tolist() == [True, False]


def test_a_node_that_was_deleted_starts_cold_when_its_name_returns() -> None:
    refreshes: list[dict[str, float]] = [{"a": HOT}] * 3 + [{}, {"a": HOT}]
    state = reduce(lambda state, each: after(state, each[1], each[0]), enumerate(refreshes), HeatState())
    assert state.resources[CPU].rounds.tolist() == [1]


def test_a_missing_snapshot_does_not_change_the_state() -> None:
    state = after(HeatState(), {"a": HOT}, 0)
    assert advance(state, None, SETTINGS) is state


@pytest.mark.parametrize(
    ("cpu_at", "memory_at", "rounds"),
    [
        ([30, 30], [30, 30], [[2, 2], [2, 2]]),
        ([0, 0], [0, 0], [[1, 1], [1, 1]]),
        ([0, 0], [30, 30], [[1, 1], [2, 2]]),
        ([30, 0], [NAN, 30], [[2, 1], [1, 2]]),
    ],
)
def test_only_newer_samples_of_a_node_and_resource_count_as_a_round(
    cpu_at: list[float], memory_at: list[float], rounds: list[list[int]]
) -> None:
    """A query that fails, or an exporter that stops, leaves old samples, which say nothing new about the load."""
    settings = HotspotSettings({CPU: 0.8, MEMORY: 0.8}, rounds=3, clear=2)
    loads = snapshot(["a", "b"], load(CPU, [HOT] * 2), load(MEMORY, [HOT] * 2))
    state = advance(HeatState(), at(loads, 0.0), settings)
    times = {CPU: cpu_at, MEMORY: memory_at}
    resources = {r: replace(each, sampled_at=np.array(times[r], float)) for r, each in loads.resources.items()}
    state = advance(state, replace(loads, window_end=30.0, resources=resources), settings)
    assert [state.resources[resource].rounds.tolist() for resource in (CPU, MEMORY)] == rounds


def test_a_node_with_another_source_or_machine_starts_cold() -> None:
    state = reduce(lambda state, number: after(state, {"a": HOT, "b": HOT}, number), range(3), HeatState())
    loads = snapshot(["a", "b"], load(CPU, [COLD, COLD]))
    state = advance(state, at(loads, 90.0), SETTINGS, moved={"a"})
    assert state.resources[CPU].is_hot.tolist() == [False, True]
    state = advance(state, loads, SETTINGS, moved={"b"})
    assert state.resources[CPU].is_hot.tolist() == [False, False]


def test_samples_from_the_state_file_do_not_count_as_a_round() -> None:
    state = HeatState()
    assert advance(state, snapshot(["a"], load(CPU, [HOT]), from_file=True), SETTINGS) is state


def test_a_resource_that_is_not_measured_leaves_its_node_cold() -> None:
    settings = HotspotSettings({LoadResource.DISK: 0.1}, rounds=1)
    state = advance(HeatState(), snapshot(["a"], load(CPU, [HOT])), settings)
    assert not np.any(state.resources[LoadResource.DISK].is_hot)


def test_nodes_heat_and_cool_after_the_clock_was_set_back() -> None:
    """A clock that was years ahead for a moment must not decide for years which nodes are hot."""
    far = 1_000_000
    state = reduce(lambda state, number: after(state, {"n": HOT}, number), (1, 2, 3, far), HeatState())
    assert state.resources[CPU].is_hot.tolist() == [True]
    state = reduce(lambda state, number: after(state, {"n": COLD}, number), (4, 5, 6), state)
    assert state.resources[CPU].is_hot.tolist() == [False]
