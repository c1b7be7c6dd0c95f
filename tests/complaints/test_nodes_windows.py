"""Reports of users of load-watcher, the descheduler and others about wrong numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from adapter.nodes.model.loads import AVG, MAX, P95, STD, VERDICTS, LoadResource, NodeVerdict, ResourceLoad
from adapter.nodes.model.samples import SampleGrid, SampleSet
from adapter.nodes.windows.estimates import BadSince, with_estimates
from adapter.nodes.windows.grid import kept_columns
from adapter.nodes.windows.load_snapshot import RefreshFacts, assemble
from adapter.nodes.windows.node_rows import SeriesRows, grid_of_series
from tests.support.sample_grids import END, NAN, STEP, column, grid_of
from tests.support.switching_load import rates

if TYPE_CHECKING:
    from adapter.nodes.model.arrays import Floats

CPU = LoadResource.CPU
COLUMNS = kept_columns(STEP)


def load_of(grid: SampleGrid, now: float = END) -> ResourceLoad:
    return assemble(SampleSet({CPU: grid}), grid.nodes, RefreshFacts(now, 30.0)).resources[CPU]


def rising() -> Floats:
    """Return a load that goes from 60 to 90% in the last two minutes."""
    return np.concatenate([np.full(COLUMNS - 8, 0.6), np.full(8, 0.9)])


def test_a_burst_shows_as_high_as_it_is__load_watcher_28() -> None:
    """A five-minute rate still shows 60%; here the maximum and the percentile show 90%, and the load is marked."""
    load = load_of(grid_of(rising()))
    assert load.stats[2, [P95, MAX], 0].tolist() == pytest.approx([0.9, 0.9])
    assert VERDICTS[int(load.verdicts[0])] is NodeVerdict.JUMPED


def test_a_restarted_exporter_does_not_change_the_average__load_watcher_71() -> None:
    """An average of averages would be 0.5; the old series has 20 of 60 samples at 0.2, the new one 40 at 0.8."""
    values = np.full((2, COLUMNS), NAN)
    values[0, : COLUMNS - 40], values[1, COLUMNS - 40 :] = 0.2, 0.8
    unknown = column(2, NAN)
    rows = SeriesRows(values, np.array([END - 600.0, END]), column(2, STEP), unknown, unknown)
    load = load_of(grid_of_series(rows, np.array([0, 0]), CPU, STEP, END, ("node-1",)))
    assert load.stats[0, AVG, 0] == pytest.approx((20 * 0.2 + 40 * 0.8) / 60)


def test_each_of_the_three_windows_has_its_mean_and_its_deviation__load_watcher_10() -> None:
    values = np.concatenate([np.full(COLUMNS - 40, 0.1), np.full(20, 0.2), np.full(20, 0.6)])
    load = load_of(grid_of(values))
    assert load.stats[:, AVG, 0].tolist() == pytest.approx([0.3, 0.4, 0.6])
    assert load.stats[:, STD, 0].tolist() == pytest.approx([0.216025, 0.2, 0.0], abs=1e-6)
    assert load.taken_from[:, 0].tolist() == [0, 1, 2]


def test_a_momentary_load_hardly_changes_the_basis_of_evictions__descheduler_1092() -> None:
    values = np.full(COLUMNS, 0.3)
    values[-1] = 1.0
    assert load_of(grid_of(values)).stats[0, AVG, 0] < 0.32


def test_expired_metrics_are_neither_accepted_nor_0__koordinator_1563() -> None:
    """After 90 seconds nothing is served; an estimate from the requests is, and is marked as one."""
    requested = {CPU: np.array([0.5, 0.5])}
    good = assemble(
        SampleSet({CPU: grid_of(np.full((2, COLUMNS), 0.4))}), ("node-0000", "node-0001"), RefreshFacts(END, 30)
    )
    state = BadSince().after_refresh(good, requested)
    expired = grid_of(np.full((2, COLUMNS), 0.4), newest=[END - 91, END])
    bad = assemble(SampleSet({CPU: expired}), good.nodes, RefreshFacts(END, 30))
    assert np.isnan(bad.resources[CPU].stats[:, :, 0]).all()
    found = with_estimates(bad, state.after_refresh(bad, requested), requested).resources[CPU]
    assert found.is_estimated.tolist() == [True, False]
    assert found.stats[0, AVG, 0] == pytest.approx(0.4)


def test_a_percentile_is_served_beside_the_average__koordinator_856() -> None:
    values = np.resize(np.arange(60) / 100, COLUMNS)
    load = load_of(grid_of(values))
    assert load.stats[0, P95, 0] == pytest.approx(0.5605)


def test_the_deviation_is_that_of_the_load_and_not_of_its_smoothing__load_watcher_28() -> None:
    """For load that switches between 10 and 90%, the existing recording rules show a fifth of its deviation."""
    load = load_of(grid_of(rates(15, 37.5, STEP, columns=COLUMNS, nodes=8)))
    assert load.stats[0, STD].min() > 0.8 * 0.4
