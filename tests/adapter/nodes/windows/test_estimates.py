"""Estimates for nodes whose metrics are bad."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.nodes.model.loads import AVG, MAX, P95, STD, LoadResource, LoadSnapshot
from adapter.nodes.model.samples import SampleSet
from adapter.nodes.windows.estimates import BadSince, is_measured, with_estimates
from adapter.nodes.windows.grid import kept_columns
from adapter.nodes.windows.load_snapshot import RefreshFacts, assemble
from tests.support.sample_grids import END, NAN, STEP, grid_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.nodes.model.arrays import Floats

CPU = LoadResource.CPU
COLUMNS = kept_columns(STEP)
NODES = ("a", "b", "c")
PATTERN = np.resize([-0.1, 0.0, 0.1], COLUMNS)


def snapshot_of(loads: Mapping[str, float], at: float = END, nodes: tuple[str, ...] = NODES) -> LoadSnapshot:
    """Return a snapshot in which each node has a load around its value; NaN for a node without samples."""
    end = int(at)
    values = np.array([loads.get(node, NAN) + PATTERN for node in nodes])
    newest = np.where(np.isnan(values).all(axis=1), NAN, end)
    grid = grid_of(values, nodes=nodes, end=end, newest=newest)
    return assemble(SampleSet({CPU: grid}), nodes, RefreshFacts(float(end), 30.0))


def requests(*ratios: float) -> dict[LoadResource, Floats]:
    return {CPU: np.array(ratios)}


HALF = requests(0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("before", "later", "expected"),
    [({"a": 0.3}, 0, True), ({}, 285, False), ({}, 300, True)],
    ids=["measured before", "never measured", "never measured for five minutes"],
)
def test_a_bad_node_is_estimated_at_once_if_it_was_measured_before_and_else_after_five_minutes(
    before: dict[str, float],
    later: int,
    expected: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    others = {"b": 0.4, "c": 0.4}
    state = BadSince().after_refresh(snapshot_of(others | before), HALF)
    bad = snapshot_of(others, END + later + 15 * len(before))
    found = with_estimates(bad, state.after_refresh(bad, HALF), HALF).resources[CPU]
    assert found.is_estimated.tolist() == [expected, False, False]
    assert np.isfinite(found.stats[:, :, 0]).all() == expected


def bad_for_long(before: Mapping[str, float], requested: dict[LoadResource, Floats] = HALF) -> BadSince:
    """Return the state after node `a` has become bad, as all are that are not in `before`."""
    state = BadSince().after_refresh(snapshot_of(before), requested)
    without = {node: load for node, load in before.items() if node != "a"}
    return state.after_refresh(snapshot_of(without, END + 15), requested)


def test_an_estimate_is_the_requests_times_the_former_ratio_of_usage_to_requests() -> None:
    """Node `a` used 0.3 when 0.5 was requested; now 0.7 is requested."""
    state = bad_for_long({"a": 0.3, "b": 0.5, "c": 0.5})
    bad = snapshot_of({"b": 0.5, "c": 0.5}, END + 600)
    found = with_estimates(bad, state, requests(0.7, 0.5, 0.5)).resources[CPU]
    measured = snapshot_of({"a": 0.3}).resources[CPU].stats[:, :, 0]
    assert found.stats[:, AVG, 0].tolist() == pytest.approx([0.42] * 3)
    assert found.stats[:, STD, 0].tolist() == pytest.approx(measured[:, STD].tolist())
    for stat in (P95, MAX):
        above = measured[:, stat] - measured[:, AVG]
        assert found.stats[:, stat, 0].tolist() == pytest.approx((0.42 + above).tolist())


def test_a_node_that_never_had_metrics_is_estimated_by_the_median_of_the_others() -> None:
    state = bad_for_long({"b": 0.2, "c": 0.4})
    bad = snapshot_of({"b": 0.2, "c": 0.4}, END + 600)
    found = with_estimates(bad, state, requests(0.5, 0.5, 0.5)).resources[CPU]
    assert found.stats[0, AVG, 0] == pytest.approx(0.5 * (0.4 + 0.8) / 2)
    assert found.stats[0, STD, 0] == pytest.approx(found.stats[0, STD, 1])


@pytest.mark.parametrize(("requested", "expected"), [(0.0, 0.7), (5e-324, 0.7), (0.0099, 0.7), (0.01, 1.0)])
def test_very_small_requests_give_no_ratio_of_usage_to_requests(requested: float, expected: float) -> None:
    """The others use 0.4 where 0.5 is requested. So much is added to what the node used almost without requests."""
    state = bad_for_long({"a": 0.3, "b": 0.4, "c": 0.4}, requests(requested, 0.5, 0.5))
    found = with_estimates(snapshot_of({"b": 0.4, "c": 0.4}, END + 600), state, HALF).resources[CPU]
    assert found.stats[0, AVG, 0] == pytest.approx(expected)


def test_a_ratio_from_before_the_requests_became_very_small_no_longer_counts() -> None:
    """Pods that request much were drained from a node that is still hot: its requests no longer show its usage."""
    loads = {"a": 0.85, "b": 0.4, "c": 0.4}
    state = BadSince().after_refresh(snapshot_of(loads), HALF)
    small, bad = requests(0.005, 0.5, 0.5), snapshot_of({"b": 0.4, "c": 0.4}, END + 30)
    state = state.after_refresh(snapshot_of(loads, END + 15), small).after_refresh(bad, small)
    found = with_estimates(bad, state, small).resources[CPU]
    assert found.stats[0, AVG, 0] == pytest.approx(0.85 + 0.005 * 0.8)


@pytest.mark.parametrize(("first", "expected"), [(0.5, 0.3 / 0.5 * 0.7), (0.005, 0.3 + 0.7 * 0.8)])
def test_requests_that_are_first_known_after_the_metrics_were_lost_are_not_counted_twice(
    first: float, expected: float
) -> None:
    """The samples of the state file are read before the pods are listed."""
    state = BadSince().after_refresh(snapshot_of({"a": 0.3, "b": 0.4, "c": 0.4}), requests(NAN, NAN, NAN))
    bad = snapshot_of({"b": 0.4, "c": 0.4}, END + 15)
    state = state.after_refresh(bad, requests(first, 0.5, 0.5)).after_refresh(bad, requests(0.7, 0.5, 0.5))
    found = with_estimates(bad, state, requests(0.7, 0.5, 0.5)).resources[CPU]
    assert found.stats[0, AVG, 0] == pytest.approx(expected)


def test_an_estimate_is_never_above_1() -> None:
    state = bad_for_long({"a": 0.85, "b": 0.5, "c": 0.5})
    found = with_estimates(snapshot_of({"b": 0.5}, END + 600), state, requests(2.0, 0.5, 0.5)).resources[CPU]
    assert found.stats[:, [AVG, P95, MAX], 0].tolist() == [[1.0] * 3] * 3


@pytest.mark.parametrize(
    ("before", "formerly_requested", "requested"),
    [
        ({"a": 0.3, "b": 0.3}, HALF, requests(NAN, 0.5, 0.5)),
        ({"a": 0.3, "b": 0.3}, requests(0.0, 0.5, 0.5), requests(NAN, 0.5, 0.5)),
        ({}, HALF, HALF),
        ({"a": 0.3, "b": 0.3}, HALF, {}),
    ],
    ids=[
        "requests unknown",
        "requests unknown after very small ones",
        "nothing was ever measured",
        "no requests of this resource",
    ],
)
def test_without_a_known_ratio_or_requests_there_is_no_estimate(
    before: Mapping[str, float], formerly_requested: dict[LoadResource, Floats], requested: dict[LoadResource, Floats]
) -> None:
    state = bad_for_long(before, formerly_requested)
    found = with_estimates(snapshot_of({}, END + 600), state, requested).resources[CPU]
    assert not found.is_estimated[0]
    assert np.isnan(found.stats[:, :, 0]).all()


def test_the_original_snapshot_has_no_estimates() -> None:
    """Readers that want no estimates use the original snapshot."""
    state = bad_for_long({"a": 0.3, "b": 0.5})
    bad = snapshot_of({"b": 0.5}, END + 600)
    found = with_estimates(bad, state, HALF)
    assert np.isnan(bad.resources[CPU].stats[:, :, 0]).all()
    assert not bad.resources[CPU].is_estimated.any()
    assert found.resources[CPU].taken_from[:, 0].tolist() == [-1, -1, -1]
    assert (found.nodes, found.assembled_at) == (bad.nodes, bad.assembled_at)


def test_a_recovered_node_is_no_longer_bad() -> None:
    state = bad_for_long({"a": 0.3, "b": 0.5, "c": 0.5})
    assert np.array_equal(state.of(CPU), [END + 15, NAN, NAN], equal_nan=True)
    state = state.after_refresh(snapshot_of({"a": 0.3, "b": 0.5, "c": 0.5}, END + 30), HALF)
    assert np.isnan(state.of(CPU)).all()
    assert np.isnan(state.of(LoadResource.DISK)).all()


def test_estimates_do_not_count_as_measured() -> None:
    """Otherwise a node would become well again by its own estimate, which the next estimate would be made from."""
    state = bad_for_long({"a": 0.3, "b": 0.5})
    estimated = with_estimates(snapshot_of({"b": 0.5}, END + 600), state, requests(0.7, 0.5, 0.5))
    assert is_measured(estimated.resources[CPU]).tolist() == [False, True, False]
    again = state.after_refresh(estimated, requests(0.7, 0.5, 0.5))
    assert again.of(CPU)[0] == END + 15
    assert again.resources[CPU].measured_per_requested[0] == pytest.approx(0.6)


def test_the_state_follows_the_list_of_nodes_and_keeps_resources_that_a_refresh_lacks() -> None:
    state = bad_for_long({"a": 0.3, "b": 0.5, "c": 0.5})
    moved = state.after_refresh(snapshot_of({"c": 0.5}, END + 30, ("a", "c", "d")), requests(0.5, 0.5, 0.5))
    assert np.array_equal(moved.of(CPU), [END + 15, NAN, END + 30], equal_nan=True)
    empty = assemble(SampleSet({}), ("c", "a"), RefreshFacts(END + 60.0, 30.0))
    assert np.array_equal(moved.after_refresh(empty, {}).of(CPU), [NAN, END + 15], equal_nan=True)
    assert state.nodes == NODES


def test_a_node_that_has_moved_to_another_machine_begins_anew() -> None:
    state = bad_for_long({"a": 0.3, "b": 0.5, "c": 0.5})
    bad = snapshot_of({"b": 0.5, "c": 0.5}, END + 30)
    moved = state.after_refresh(bad, HALF, moved={"a"})
    assert np.array_equal(moved.of(CPU), [END + 30, NAN, NAN], equal_nan=True)
    assert np.isnan(moved.resources[CPU].measured_per_requested).tolist() == [True, False, False]
    assert np.isnan(moved.resources[CPU].spread[0, AVG]).tolist() == [True, False, False]


def test_each_node_is_estimated_by_its_own_history_if_the_list_of_nodes_differs() -> None:
    """Nodes may be added and removed between a refresh and the snapshot that is made of it."""
    state = bad_for_long({"a": 0.3, "b": 0.5, "c": 0.5})
    moved = snapshot_of({"b": 0.5}, END + 600, ("0", "a", "b"))
    found = with_estimates(moved, state, HALF).resources[CPU]
    assert found.is_estimated.tolist() == [False, True, False]
    assert found.stats[0, AVG, 1] == pytest.approx(0.3)


def test_a_cluster_without_nodes_has_no_estimates() -> None:
    snapshot = snapshot_of({}, nodes=("a",))
    empty = assemble(SampleSet({}), (), RefreshFacts(END + 60.0, 30.0))
    state = BadSince().after_refresh(snapshot, requests(0.5)).after_refresh(empty, {})
    assert state.of(CPU).shape == (0,)
    assert with_estimates(empty, state, {}).nodes == ()


LOAD = st.one_of(st.just(NAN), st.floats(0.1, 0.9))
RATIO = st.one_of(st.just(NAN), st.floats(0, 5))


@given(st.lists(st.tuples(LOAD, LOAD, RATIO, RATIO), min_size=3, max_size=3))
@settings(max_examples=50)
def test_only_bad_nodes_get_estimates_and_these_are_ratios(rows: list[tuple[float, float, float, float]]) -> None:
    before, after, requested_before, requested = (np.array(column) for column in zip(*rows, strict=True))
    state = BadSince().after_refresh(snapshot_of(dict(zip(NODES, before, strict=True))), {CPU: requested_before})
    for seconds in (15, 600):
        plain = snapshot_of(dict(zip(NODES, after, strict=True)), END + seconds)
        state = state.after_refresh(plain, {CPU: requested})
    found = with_estimates(plain, state, {CPU: requested}).resources[CPU]
    measured = ~np.isnan(after)
    assert not (found.is_estimated & measured).any()
    assert np.array_equal(found.stats[:, :, measured], plain.resources[CPU].stats[:, :, measured])
    assert np.isfinite(found.stats).all(axis=(0, 1)).tolist() == (measured | found.is_estimated).tolist()
    assert (np.isnan(found.stats) | ((found.stats >= 0) & (found.stats <= 1))).all()
