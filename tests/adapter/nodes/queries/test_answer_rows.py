"""Each series of an answer becomes a row with its values, and with the times at which they were measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from adapter.foundation.time.pace import UNPACED
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.queries.answer_rows import AnswerRows, accounted_of, layout_of, rows_of
from adapter.nodes.queries.expressions import PART_LABEL
from adapter.nodes.queries.query_steps import QueryPiece
from adapter.nodes.queries.scrape_intervals import row_medians
from tests.adapter.nodes.queries.answers import Series, matrix_body, read_matrix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PIECE = QueryPiece(1500, 1545, 15)


def series(part: str, *values: float | None, **labels: str) -> Series:
    present = {time: value for time, value in zip(PIECE.times, values, strict=True) if value is not None}
    return {"instance": "a", **labels, PART_LABEL: part}, present


def read_rows(
    resource: LoadResource, found: Sequence[Series], known: Mapping[str, float], *, is_overridden: bool = False
) -> AnswerRows:
    matrix = read_matrix(matrix_body(found), PIECE)
    layout = layout_of(b"", matrix.names.labels("", UNPACED), resource, is_overridden=is_overridden)
    usual = row_medians(accounted_of(layout, matrix.values))
    return rows_of(resource, layout, matrix.values, PIECE, known, usual, is_overridden=is_overridden)


def cpu(*found: Series) -> AnswerRows:
    return read_rows(LoadResource.CPU, found, {"a": 15.0})


@pytest.mark.parametrize(
    ("idle", "busy", "expected"),
    [
        ((0.9, 0.9, 0.9, 0.9), (0.1, 0.1, 0.1, 0.1), (0.1, 0.1, 0.1, 0.1)),
        ((0.9, 0.99, 0.81, 0.9), (0.1, 0.11, 0.09, 0.1), (0.1, 0.1, 0.1, 0.1)),
        ((0.9, 0.18, 0.9, 0.9), (0.1, 0.02, 0.1, 0.1), (0.1, 0.1, 0.1, 0.1)),
        ((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), (math.nan,) * 4),
        ((0.9, None, 0.9, None), (0.1, None, 0.1, None), (0.1, math.nan, 0.1, math.nan)),
        ((0.9, 0.8, 0.3, 0.6), (0.01, 0.01, 0.01, 0.01), (0.1, 0.2, 0.7, 0.4)),
        ((0.5, math.inf, math.nan, 0.5), (0.5, 0.5, 0.5, 0.5), (0.5, math.nan, math.nan, 0.5)),
        ((0.9, 1e308, 0.9, 0.9), (0.1, 1e308, 0.1, 0.1), (0.1, -1e308, 0.1, 0.1)),
    ],
    ids=[
        "all modes",
        "a late scrape cancels out",
        "after a reboot",
        "stopped counters are not a full load",
        "missing steps",
        "an exporter that leaves out a busy mode",
        "infinite and not a number",
        "a sum beyond the largest number is not a full load",
    ],
)
def test_cpu_load_is_the_share_that_is_not_idle(
    idle: tuple[float | None, ...], busy: tuple[float | None, ...], expected: tuple[float, ...]
) -> None:
    rows = cpu(series("idle", *idle), series("busy", *busy))
    assert rows.values[0] == pytest.approx(expected, nan_ok=True)


def test_without_busy_modes_the_load_is_one_minus_the_idle_rate() -> None:
    rows = cpu(series("idle", 0.9, 0.8, 0.2, 1.01))
    assert rows.values[0] == pytest.approx([0.1, 0.2, 0.8, 0.0])
    assert math.isnan(rows.advancing[0])


def test_the_last_step_at_which_counters_advanced_is_kept() -> None:
    rows = cpu(series("idle", 0.9, 0.9, 0, 0), series("busy", 0.1, 0.1, 0, 0))
    assert rows.advancing[0] == 1515
    assert rows.first_known[0] == 1500


def test_a_reset_is_recorded_at_the_step_where_it_enters_the_range() -> None:
    rows = cpu(series("idle", 1, 1, 1, 1), series("resets", None, 1, 1, 1))
    assert rows.reset_at[0] == 1515


def test_a_sample_is_repeated_for_one_failed_scrape_and_not_longer() -> None:
    rows = read_rows(
        LoadResource.MEMORY,
        [series("ratio", 0.1, 0.2, 0.2, 0.2), series("newest", 1499, 1514, 1514, 1514)],
        {"a": 15.0},
    )
    assert rows.values[0] == pytest.approx([0.1, 0.2, 0.2, math.nan], nan_ok=True)
    assert rows.newest[0] == 1514


def test_a_rate_that_outlasts_failed_scrapes_counts_no_longer_than_a_sample() -> None:
    """A failed scrape ends the samples of its target at once, but not the rates over them."""
    rates = (series("idle", 0.9, 0.8, 0.8, 0.8), series("busy", 0.1, 0.2, 0.2, 0.2))
    after, before = series("newest", 1499, None, None, None), series("newest", None, None, None, 1544)
    assert cpu(*rates, after).values[0] == pytest.approx([0.1, 0.2, math.nan, math.nan], nan_ok=True)
    assert cpu(*rates, before).values[0] == pytest.approx([math.nan, math.nan, math.nan, 0.2], nan_ok=True)
    # Where a store has the results of rules alone, nothing is known of samples.
    assert cpu(*rates).values[0] == pytest.approx([0.1, 0.2, 0.2, 0.2])


@pytest.mark.parametrize(
    ("resource", "values", "expected"),
    [
        (LoadResource.DISK, (1.05, 1.0, 1.2, 0.5), (1.0, 1.0, 1.2, 0.5)),
        (LoadResource.NETWORK, (1.1, -0.01, 0.0, 0.5), (1.0, 0.0, 0.0, 0.5)),
        (LoadResource.MEMORY, (1.05, -0.01, 1.0, 0.5), (1.05, -0.01, 1.0, 0.5)),
    ],
)
def test_small_overshoots_of_late_scrapes_are_clipped_for_devices(
    resource: LoadResource, values: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    rows = read_rows(resource, [series("ratio", *values)], {})
    assert rows.values[0] == pytest.approx(expected)


def test_the_result_of_a_configured_query_is_used_unchanged() -> None:
    found = [series("ratio", 1.05, -0.01, 0.5, 0.5, zone="z"), series("newest", 1500, 1515, 1530, 1545, zone="z")]
    rows = read_rows(LoadResource.DISK, found, {}, is_overridden=True)
    assert rows.values[0] == pytest.approx([1.05, -0.01, 0.5, 0.5])
    assert rows.labels == ({"instance": "a", "zone": "z"},)
    assert math.isnan(rows.scrape_seconds[0])
    assert math.isnan(rows.advancing[0])


def test_an_exporter_that_is_scraped_too_rarely_for_a_rate_has_a_row_without_values() -> None:
    rows = cpu(series("newest", 1490, 1490, 1490, 1540))
    assert rows.labels == ({"instance": "a"},)
    assert np.isnan(rows.values).all()
    assert rows.newest[0] == 1540


@pytest.mark.parametrize(
    ("newest", "counted", "expected"),
    [
        ((1499, 1514, 1529, 1544), 75.0, 15.0),
        ((1499, 1499, 1499, 1499), 60.0, 60.0),
        ((1499, 1514, 1529, 1544), 5.0, 5.0),
        ((1499, 1524, 1524, 1549), math.nan, 25.0),
    ],
    ids=["a new target, or one with gaps", "no second sample yet", "scrapes closer than the steps", "not counted"],
)
def test_the_shorter_of_both_estimates_of_the_scrape_interval_counts(
    newest: tuple[float, ...], counted: float, expected: float
) -> None:
    rows = read_rows(LoadResource.CPU, [series("newest", *newest)], {"a": counted})
    assert rows.scrape_seconds[0] == expected


def test_series_without_a_known_part_and_empty_answers_have_no_rows() -> None:
    assert cpu().labels == ()
    assert cpu(series("other", 1, 1, 1, 1)).labels == ()
    assert cpu().values.shape == (0, 4)
