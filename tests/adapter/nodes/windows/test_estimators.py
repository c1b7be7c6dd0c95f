"""How much of the true deviation a rate over a few scrapes shows, compared with the table in `docs/node-windows.md`."""

from __future__ import annotations

import numpy as np
import pytest

from adapter.nodes.model.loads import AVG, P95, STD, VERDICTS, NodeVerdict
from adapter.nodes.model.samples import SampleSet
from adapter.nodes.windows.grid import kept_columns
from adapter.nodes.windows.load_snapshot import RefreshFacts, assemble
from adapter.nodes.windows.statistics import window_statistics
from tests.support.sample_grids import END, STEP, grid_of
from tests.support.switching_load import HIGH, TRUE_STD, instant_rates, rates

DOCUMENTED = [
    # Scrape interval, scrapes that the rate spans, error of the standard deviation.
    (15, 2.0, -0.05),
    (15, 2.5, -0.07),
    (15, 3.0, -0.09),
    (15, 4.0, -0.14),
    (30, 2.0, -0.09),
    (30, 2.5, -0.14),
    (30, 3.0, -0.19),
    (30, 4.0, -0.30),
    (60, 2.0, -0.20),
    (60, 2.5, -0.33),
    (60, 3.0, -0.43),
    (60, 4.0, -0.73),
]


@pytest.mark.parametrize(("scrape", "scrapes", "error"), DOCUMENTED)
def test_each_estimator_has_its_documented_error(scrape: int, scrapes: float, error: float) -> None:
    columns = 900 // scrape
    found = window_statistics(rates(scrape, scrapes * scrape, scrape, columns=columns), scrape)[0, STD]
    assert found.mean() / TRUE_STD - 1 == pytest.approx(error, abs=0.02)


@pytest.mark.parametrize(
    ("scrape", "error", "worst_error"), [(15, -0.05, -0.10), (30, -0.09, -0.15), (60, -0.19, -0.32)]
)
def test_the_rate_between_the_last_two_scrapes_has_its_documented_error(
    scrape: int, error: float, worst_error: float
) -> None:
    values = instant_rates(scrape, STEP, columns=60)
    assert not np.isnan(values).any()
    found = window_statistics(values, STEP)[0, STD]
    assert found.mean() / TRUE_STD - 1 == pytest.approx(error, abs=0.02)
    assert found.min() / TRUE_STD - 1 == pytest.approx(worst_error, abs=0.03)


@pytest.mark.parametrize("scrapes", [2.0, 2.5, 3.0, 4.0])
def test_with_15_s_scrapes_the_served_deviation_is_within_20_percent_of_the_true_one(scrapes: float) -> None:
    """The samples are followed to the snapshot, for each node and not only on average."""
    values = rates(15, scrapes * 15, STEP, columns=kept_columns(STEP))
    grid = grid_of(values, end=END)
    load = next(
        iter(assemble(SampleSet({grid.resource: grid}), grid.nodes, RefreshFacts(END, 30.0)).resources.values())
    )
    assert np.abs(load.stats[0, STD] / TRUE_STD - 1).max() < 0.2
    assert np.abs(load.stats[0, AVG] - 0.5).max() < 0.03
    assert load.stats[0, P95].tolist() == pytest.approx([HIGH] * len(values))
    assert {VERDICTS[int(verdict)] for verdict in load.verdicts} <= {NodeVerdict.FRESH, NodeVerdict.JUMPED}


def test_a_five_minute_rate_hides_the_deviation() -> None:
    found = window_statistics(rates(15, 300.0, STEP, columns=60), STEP)[0, STD]
    assert found.mean() == pytest.approx(0.055, abs=0.005)


def test_the_deviation_does_not_depend_on_steps_finer_than_scrapes() -> None:
    """Steps between two scrapes repeat what is known, and do not count as more samples."""
    at_scrapes = window_statistics(rates(30, 60.0, 30, columns=30), 30)[0, STD].mean()
    between = window_statistics(rates(30, 60.0, 15, columns=60), 15)[0, STD].mean()
    assert between == pytest.approx(at_scrapes, rel=0.02)


def test_a_rate_over_exactly_two_scrapes_misses_some_steps() -> None:
    """A scrape that is a little late leaves one sample in the range; a range half an interval longer prevents that."""
    assert np.isnan(rates(15, 30.0, STEP, columns=60)).any()
    assert not np.isnan(rates(15, 37.5, STEP, columns=60)).any()
