"""The analyser of bad metrics: each verdict at its limit and on both sides of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.nodes.model.loads import AVG, SERVED_VERDICTS, VERDICTS, LoadResource, NodeVerdict, ResourceLoad
from adapter.nodes.model.samples import SampleGrid, SampleSet
from adapter.nodes.windows.grid import kept_columns, regrid
from adapter.nodes.windows.load_snapshot import RefreshFacts, assemble
from tests.support.sample_grids import END, NAN, STEP, grid_of

if TYPE_CHECKING:
    from adapter.nodes.model.arrays import Floats

REFRESH = 30.0
COLUMNS = kept_columns(STEP)


def samples(base: float = 0.5, **at: float) -> Floats:
    """Return samples that move by a percent around the base; `last_3=0.9` sets the last three."""
    values = base + np.where(np.arange(COLUMNS) % 2, 0.01, -0.01)
    for name, value in at.items():
        values[-int(name.removeprefix("last_")) :] = value
    return values


def first_missing(columns: int) -> Floats:
    """Return samples without the oldest ones of the 15-minute window."""
    values = samples()
    values[: COLUMNS - 60 + columns] = NAN
    return values


def with_value(value: float, *, ago: int = 0) -> Floats:
    """Return samples whose newest, or one `ago` steps before it, has this value."""
    values = samples()
    values[-1 - ago] = value
    return values


def judged(
    grid: SampleGrid, now: float = END, pod_at: float = NAN, *, from_file: bool = False, window_end: int = END
) -> ResourceLoad:
    """Return the load; another resource in the set makes the windows end at `window_end` or later."""
    other = grid_of([0.5], nodes=grid.nodes[:1], end=window_end, resource=LoadResource.MEMORY)
    pods = np.full(len(grid.nodes), pod_at)
    sample_set = SampleSet({LoadResource.CPU: grid, LoadResource.MEMORY: other}, from_file)
    return assemble(sample_set, grid.nodes, RefreshFacts(now, REFRESH, pods)).resources[LoadResource.CPU]


def verdict_of(load: ResourceLoad, node: int = 0) -> NodeVerdict:
    return VERDICTS[int(load.verdicts[node])]


V = NodeVerdict
TABLE: list[tuple[str, Floats, dict[str, Any], dict[str, Any], NodeVerdict]] = [
    ("steady", samples(), {}, {}, V.FRESH),
    # Stale: the larger of 90 s and two scrapes (15 s) and the refresh (30 s).
    ("89 s old", samples(), {}, {"now": END + 89}, V.FRESH),
    ("90 s old", samples(), {}, {"now": END + 90}, V.FRESH),
    ("91 s old", samples(), {}, {"now": END + 91}, V.STALE),
    # Two scrapes of 60 s and the refresh are 150 s.
    ("149 s old, scraped each 60 s", samples(), {"scrape": 60}, {"now": END + 149}, V.FRESH),
    ("150 s old, scraped each 60 s", samples(), {"scrape": 60}, {"now": END + 150}, V.FRESH),
    ("151 s old, scraped each 60 s", samples(), {"scrape": 60}, {"now": END + 151}, V.STALE),
    ("90 s old, interval unknown", samples(), {"scrape": NAN}, {"now": END + 90}, V.FRESH),
    ("91 s old, interval unknown", samples(), {"scrape": NAN}, {"now": END + 91}, V.STALE),
    # Prometheus repeats the last sample for five minutes: the age counts, not the last column.
    ("repeats a sample of 90 s ago", samples(), {"newest": END - 90}, {}, V.GAP),
    ("repeats a sample of 91 s ago", samples(), {"newest": END - 91}, {}, V.STALE),
    ("newest unknown, last column", samples(), {"newest": NAN}, {"now": END + 91}, V.STALE),
    # From the file: as of when it was saved, until older than the longest window.
    ("file, 899 s old", samples(), {}, {"now": END + 899, "from_file": True}, V.FRESH),
    ("file, 900 s old", samples(), {}, {"now": END + 900, "from_file": True}, V.FRESH),
    ("file, 901 s old", samples(), {}, {"now": END + 901, "from_file": True}, V.STALE),
    ("file, stale when saved", samples(), {"newest": END - 91}, {"now": END, "from_file": True}, V.STALE),
    # Gap: under 80% of 60 samples.
    ("11 of 60 missing", first_missing(11), {}, {}, V.FRESH),
    ("12 of 60 missing", first_missing(12), {}, {}, V.FRESH),
    ("13 of 60 missing", first_missing(13), {}, {}, V.GAP),
    # Stuck: ten minutes.
    ("advanced 585 s ago", samples(), {"advancing": END - 585}, {}, V.FRESH),
    ("advanced 599 s ago", samples(), {"advancing": END - 599}, {}, V.FRESH),
    ("advanced 600 s ago", samples(), {"advancing": END - 600}, {}, V.STUCK),
    ("advanced 601 s ago", samples(), {"advancing": END - 601}, {}, V.STUCK),
    ("not judged", samples(), {"advancing": NAN}, {}, V.FRESH),
    ("its query failed since", samples(), {"advancing": END - 585}, {"window_end": END + 30, "now": END + 30}, V.FRESH),
    # Out of range.
    ("0", with_value(0.0, ago=9), {}, {}, V.FRESH),
    ("newest is below 0 by rounding", with_value(-1e-12), {}, {}, V.JUMPED),
    ("below 0", with_value(-0.001), {}, {}, V.OUT_OF_RANGE),
    ("1", with_value(1.0, ago=9), {}, {}, V.FRESH),
    ("1.02", with_value(1.02, ago=9), {}, {}, V.FRESH),
    ("newest is 1.02", with_value(1.02), {}, {}, V.JUMPED),
    ("one was above 1.02", with_value(7.0, ago=1), {}, {}, V.FRESH),
    ("13 were above 1.02", np.where(np.arange(COLUMNS) < COLUMNS - 47, 7.0, samples()), {}, {}, V.GAP),
    ("above 1.02", with_value(1.0201), {}, {}, V.OUT_OF_RANGE),
    ("infinite", with_value(float("inf")), {}, {}, V.OUT_OF_RANGE),
    ("minus infinite", with_value(float("-inf")), {}, {}, V.OUT_OF_RANGE),
    # Counter reset: inside of the longest window.
    ("reset 899 s ago", samples(), {"reset_at": END - 899}, {}, V.COUNTER_RESET),
    ("reset 900 s ago", samples(), {"reset_at": END - 900}, {}, V.FRESH),
    ("reset 901 s ago", samples(), {"reset_at": END - 901}, {}, V.FRESH),
    # Jumped: the median is 0.49 or 0.51, the median deviation at most 0.02.
    ("high, no pod", samples(last_1=0.9), {}, {}, V.JUMPED),
    ("low, no pod", samples(last_1=0.1), {}, {}, V.JUMPED),
    ("high for five minutes", samples(last_20=0.9), {}, {}, V.JUMPED),
    ("high and back again", np.roll(samples(last_1=0.9), -5), {}, {}, V.FRESH),
    ("high at the onset of a pod", samples(last_1=0.9), {}, {"pod_at": END}, V.FRESH),
    ("high 299 s after a pod", samples(last_1=0.9), {}, {"pod_at": END - 299}, V.FRESH),
    ("high 300 s after a pod", samples(last_1=0.9), {}, {"pod_at": END - 300}, V.FRESH),
    ("high 301 s after a pod", samples(last_1=0.9), {}, {"pod_at": END - 301}, V.JUMPED),
    # The jump began 285 s ago: a pod of 585 s ago still explains it.
    ("high since a pod", samples(last_20=0.9), {}, {"pod_at": END - 285 - 300}, V.FRESH),
    ("high since long after a pod", samples(last_20=0.9), {}, {"pod_at": END - 285 - 301}, V.JUMPED),
    ("low after a pod ended", samples(last_1=0.1), {}, {"pod_at": END - 10}, V.FRESH),
    # Missing.
    ("no sample", np.full(COLUMNS, NAN), {"newest": NAN}, {}, V.MISSING),
    ("no sample for long", np.full(COLUMNS, NAN), {"newest": END - 2000}, {}, V.STALE),
    ("scraped, but no rate yet", np.full(COLUMNS, NAN), {}, {}, V.GAP),
    # The graver verdict counts.
    ("reset in a gap", first_missing(13), {"reset_at": END - 60}, {}, V.GAP),
    ("jump after a reset", samples(last_1=0.9), {"reset_at": END - 60}, {}, V.COUNTER_RESET),
    ("stuck and out of range", with_value(2.0), {"advancing": END - 600}, {}, V.STUCK),
    ("gap and out of range", with_value(2.0) + first_missing(13) * 0, {}, {}, V.OUT_OF_RANGE),
    ("stale and stuck", samples(), {"advancing": END - 600}, {"now": END + 91}, V.STALE),
]


@pytest.mark.parametrize(
    ("values", "facts", "when", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_each_verdict_begins_at_its_limit(
    values: Floats, facts: dict[str, Any], when: dict[str, Any], expected: NodeVerdict
) -> None:
    load = judged(grid_of(values, **facts), **when)
    assert verdict_of(load) is expected
    if expected not in SERVED_VERDICTS:
        assert np.isnan(load.stats).all()
        assert (load.taken_from == -1).all()
    elif expected is not V.GAP:
        assert np.isfinite(load.stats).all()


@pytest.mark.parametrize(("factor", "expected"), [(5.9, V.FRESH), (6.1, V.JUMPED)])
def test_a_jump_is_more_than_six_median_deviations(factor: float, expected: NodeVerdict) -> None:
    """59 samples of 0.4, 0.5 or 0.6 have a median of 0.5 and a median deviation of 0.05."""
    values = 0.5 + 0.05 * np.resize([-1.0, 1.0, 0.0, -1.0, 1.0], COLUMNS)
    values[-1] = 0.5 + 0.05 * factor
    assert verdict_of(judged(grid_of(values))) is expected


@pytest.mark.parametrize(("value", "expected"), [(0.5299, V.FRESH), (0.5301, V.JUMPED)])
def test_a_constant_load_does_not_count_as_jumped_at_small_changes(value: float, expected: NodeVerdict) -> None:
    values = np.full(COLUMNS, 0.5)
    values[-1] = value
    assert verdict_of(judged(grid_of(values))) is expected


@pytest.mark.parametrize(
    ("age", "expected"), [(300, [0, 1, 2]), (301, [0, 1, 1]), (600, [0, 1, 1]), (601, [0, 0, 0]), (900, [0, 0, 0])]
)
def test_a_window_of_the_state_file_is_served_until_its_age_exceeds_its_length(age: int, expected: list[int]) -> None:
    load = judged(grid_of(samples()), now=END + age, from_file=True)
    assert load.taken_from[:, 0].tolist() == expected
    assert load.sampled_at.tolist() == [END]


@pytest.mark.parametrize(
    ("columns", "expected"), [(12, [0, 1, 2]), (28, [1, 1, 2]), (44, [2, 2, 2]), (45, [-1, -1, -1])]
)
def test_windows_with_a_gap_are_served_from_one_with_enough_samples(columns: int, expected: list[int]) -> None:
    load = judged(grid_of(first_missing(columns)))
    assert load.taken_from[:, 0].tolist() == expected
    assert np.isnan(load.stats[:, AVG, 0]).tolist() == [window < 0 for window in expected]


FACT = st.one_of(st.just(NAN), st.floats(END - 1200, END))
ROW = st.lists(
    st.one_of(st.just(NAN), st.floats(0, 1), st.sampled_from([-0.5, 1.01, 1.5, float("inf")])), min_size=1, max_size=6
)
Node: TypeAlias = tuple[list[float], float, float, float, float]
NODES = st.lists(st.tuples(ROW, FACT, st.sampled_from([NAN, 15.0, 30.0, 60.0]), FACT, FACT), min_size=1, max_size=6)


def grid_of_nodes(nodes: list[Node]) -> SampleGrid:
    """Return a grid in which each node repeats a short pattern."""
    return grid_of(
        np.array([np.resize(row, COLUMNS) for row, *_ in nodes]),
        newest=[node[1] for node in nodes],
        scrape=[node[2] for node in nodes],
        advancing=[node[3] for node in nodes],
        reset_at=[node[4] for node in nodes],
    )


@given(nodes=NODES, pick=st.integers(0, 5), age=st.floats(0, 1000), from_file=st.booleans())
@settings(max_examples=50)
def test_the_verdict_and_statistics_of_a_node_do_not_depend_on_other_nodes(
    *, nodes: list[Node], pick: int, age: float, from_file: bool
) -> None:
    grid = grid_of_nodes(nodes)
    node = pick % len(nodes)
    beside = judged(grid, now=END + age, from_file=from_file)
    alone = judged(regrid(grid, grid.nodes[node : node + 1]), now=END + age, from_file=from_file)
    assert verdict_of(beside, node) is verdict_of(alone)
    assert beside.taken_from[:, node].tolist() == alone.taken_from[:, 0].tolist()
    assert np.allclose(beside.stats[:, :, node], alone.stats[:, :, 0], rtol=0, atol=1e-12, equal_nan=True)


@given(nodes=NODES, age=st.floats(0, 1000), from_file=st.booleans())
@settings(max_examples=50)
def test_only_served_nodes_have_numbers_and_all_are_ratios(*, nodes: list[Node], age: float, from_file: bool) -> None:
    grid = grid_of_nodes(nodes)
    load = judged(grid, now=END + age, from_file=from_file)
    for node in range(len(nodes)):
        numbers = load.stats[:, :, node]
        served = load.taken_from[:, node] >= 0
        assert np.array_equal(np.isfinite(numbers), np.repeat(served[:, None], 4, axis=1))
        assert ((numbers >= 0) & (numbers <= 1) | np.isnan(numbers)).all()
        if verdict_of(load, node) not in SERVED_VERDICTS or np.isnan(grid.values[node]).all():
            assert not served.any()
