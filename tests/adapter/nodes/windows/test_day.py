"""Windows of an hour and a day, made of five-minute means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.model.day import SLOT_SECONDS, SLOTS, LoadDay
from adapter.nodes.model.loads import AVG, MAX, WINDOW_NAMES, LoadResource
from adapter.nodes.model.samples import SampleSet
from adapter.nodes.windows.day import complete_slots, day_after, day_of_samples, known_slots, samples_of_day, with_day
from adapter.nodes.windows.grid import kept_columns
from adapter.nodes.windows.load_snapshot import RefreshFacts, assemble
from tests.support.sample_grids import NAN, STEP, grid_of

if TYPE_CHECKING:
    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.samples import SampleGrid

CPU = LoadResource.CPU
END = 1_700_000_100 // SLOT_SECONDS * SLOT_SECONDS
NOW = END + 75.0
COLUMNS = kept_columns(STEP)
HOUR, DAY = 0, 1


def slots_of(values: Floats, *, newest: float = NOW, end: int = END + 75, scrape: float = STEP) -> SampleGrid:
    grid = grid_of(values, end=end, newest=newest, scrape=scrape)
    return complete_slots(SampleSet({CPU: grid}), NOW)[CPU]


def day_grid(*means: list[float], end: int = END, names: tuple[str, ...] | None = None) -> SampleGrid:
    return grid_of(np.array(means), step=SLOT_SECONDS, end=end, nodes=names)


def one_node(slots: dict[int, float]) -> LoadDay:
    """Return the day of a node with these means, in slots that are counted back from the last."""
    values = np.full(SLOTS, NAN)
    for ago, mean in slots.items():
        values[SLOTS - 1 - ago] = mean
    return day_after(LoadDay(), [day_grid(values.tolist(), names=("a",))], END + 1.0)


def test_a_slot_is_the_mean_of_its_five_minutes() -> None:
    times = END + 75 - STEP * np.arange(COLUMNS - 1, -1, -1)
    found = slots_of(np.where(times > END - 300, 0.8, 0.004)[None, :])
    assert (found.end, found.step_seconds) == (END, SLOT_SECONDS)
    assert found.values[0, -2:].tolist() == pytest.approx([0.004, 0.8])


def test_a_slot_waits_for_late_samples() -> None:
    values = np.full((1, COLUMNS), 0.5)
    early = complete_slots(SampleSet({CPU: grid_of(values, end=END + 45, newest=END + 45)}), END + 59.0)[CPU]
    assert early.end == END - SLOT_SECONDS
    assert slots_of(values).end == END


@pytest.mark.parametrize(("lacking", "expected"), [(4, 0.5), (5, NAN)], ids=["80% of the samples", "fewer"])
def test_a_slot_without_enough_samples_has_no_mean(lacking: int, expected: float) -> None:
    values = np.full((1, COLUMNS), 0.5)
    values[0, -25 : -25 + lacking] = NAN
    assert slots_of(values).values[0, -1] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(("step", "late"), [(STEP, 7), (7, 0), (600, 0)])
def test_samples_on_other_steps_give_no_slots_and_no_error(step: int, late: int) -> None:
    grid = grid_of(np.full((1, COLUMNS), 0.5), nodes=("a",), end=END + late)
    assert complete_slots(SampleSet({CPU: replace(grid, step_seconds=step)}), END + 600.0) == {}


def test_samples_out_of_range_do_not_count() -> None:
    values = np.full((1, COLUMNS), 0.5)
    values[0, -10] = 40.0
    assert slots_of(values).values[0, -1] == pytest.approx(0.5)


def test_repetitions_of_an_old_sample_do_not_count() -> None:
    found = slots_of(np.full((1, COLUMNS), 0.5), newest=END - 200.0)
    assert np.isnan(found.values[0, -1])


def test_windows_are_served_with_at_least_80_percent_of_their_slots() -> None:
    enough = one_node(dict.fromkeys(range(10), 0.25) | {3: 0.75})
    assert enough.stats[CPU][HOUR, [AVG, MAX], 0].tolist() == pytest.approx([0.3, 0.75])
    assert np.isnan(enough.stats[CPU][DAY]).all()
    assert np.isnan(one_node(dict.fromkeys(range(9), 0.25)).stats[CPU]).all()
    whole = one_node(dict.fromkeys(range(SLOTS), 0.25) | {200: 1.0})
    assert whole.stats[CPU][:, MAX, 0].tolist() == pytest.approx([0.25, 1.0])


def test_a_node_whose_exporter_is_gone_loses_its_windows() -> None:
    day = one_node(dict.fromkeys(range(SLOTS), 0.5))
    assert not np.isnan(day_after(day, [], END + 2 * SLOT_SECONDS + 1.0).stats[CPU]).any()
    later = day_after(day, [], END + 3 * SLOT_SECONDS + 1.0).stats[CPU]
    assert np.isnan(later[HOUR]).all()
    assert not np.isnan(later[DAY]).any()


def test_samples_of_a_former_exporter_do_not_count() -> None:
    slots = day_grid([0.5] * SLOTS, [0.5] * SLOTS, names=("a", "b"))
    day = day_after(LoadDay(), [slots], END + 1.0)
    moved = day_after(day, [], END + 1.0, ("a", "b"), {"b"})
    assert np.isnan(moved.stats[CPU][DAY, AVG]).tolist() == [False, True]


def test_nodes_come_from_the_node_objects_or_else_from_the_samples() -> None:
    day = one_node({0: 0.5, 1: 0.5})
    assert day_after(day, [], END + 1.0, ("b",)).nodes == ("b",)
    both = day_after(day, [day_grid([0.5, 0.5], names=("b",))], END + 1.0)
    assert both.nodes == ("a", "b")
    assert day_after(both, [], END + 86_400.0 + 600).nodes == ()


def test_slots_of_the_future_are_dropped_after_the_clock_was_set_back() -> None:
    day = one_node({0: 0.9, 20: 0.1})
    back = day_after(day, [], END - 10 * SLOT_SECONDS + 1.0)
    assert known_slots(back, CPU) == {END - 20 * SLOT_SECONDS}
    assert known_slots(day_after(day, [], END - 400 * SLOT_SECONDS), CPU) == set()


def test_a_day_is_restored_from_its_state_file() -> None:
    day = one_node({0: 0.5, 7: 0.25})
    again = day_of_samples(samples_of_day(day), END + 1.0)
    assert (again.end, again.nodes) == (day.end, day.nodes)
    np.testing.assert_array_equal(again.means[CPU], day.means[CPU])
    assert day_of_samples(SampleSet({CPU: replace(day_grid([40.0]), step_seconds=SLOT_SECONDS)}), END + 1.0).means == {}


def test_a_snapshot_gets_the_hour_and_day_windows_beside_the_short_ones() -> None:
    samples = SampleSet({CPU: grid_of(np.full((2, COLUMNS), 0.5), end=END, nodes=("a", "new"))})
    snapshot = assemble(samples, ("a", "new"), RefreshFacts(END + 5.0, 30.0))
    found = with_day(snapshot, one_node(dict.fromkeys(range(SLOTS), 0.25))).resources[CPU]
    assert found.stats[:, AVG, 0].tolist() == pytest.approx([0.5, 0.5, 0.5, 0.25, 0.25])
    assert [WINDOW_NAMES[window] for window in found.taken_from[3:, 0]] == ["1h", "1d"]
    assert found.taken_from[3:, 1].tolist() == [-1, -1]
    assert np.isnan(with_day(snapshot, LoadDay()).resources[CPU].stats[3:]).all()


@given(
    parts=st.lists(
        st.tuples(st.integers(0, 40), st.lists(st.sampled_from([NAN, 0.0, 0.5, 1.0]), min_size=1, max_size=8)),
        max_size=6,
    )
)
def test_later_samples_do_not_change_a_known_slot(parts: list[tuple[int, list[float]]]) -> None:
    day, first = LoadDay(), dict[int, float]()
    for ago, means in parts:
        end = END - ago * SLOT_SECONDS
        day = day_after(day, [day_grid(means, end=end, names=("a",))], END + 1.0)
        for back, mean in enumerate(reversed(means)):
            if not np.isnan(mean):
                first.setdefault(end - back * SLOT_SECONDS, mean)
    row = day.means[CPU][0].tolist() if first else []
    found = {END - (SLOTS - 1 - column) * SLOT_SECONDS: mean for column, mean in enumerate(row) if not np.isnan(mean)}
    assert found == first
