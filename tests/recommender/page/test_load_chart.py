"""The chart of the load draws forecasts at the time that they predict."""

from __future__ import annotations

import math
import re

from hypothesis import given
from hypothesis import strategies as st

from recommender.decisions.history_point import HistoryPoint, LoadPoint
from recommender.page.axes import HEIGHT, LEFT, RIGHT, WIDTH
from recommender.page.load_chart import load_chart_of
from recommender.page.size_chart import chart_of

START = 1_000_000.0


def at(time: float, load: LoadPoint | None) -> HistoryPoint:
    return HistoryPoint(time, 1, "ok", None, 1, load)


def predicting(minute: int, load: float, lead_minutes: int | None = 10) -> HistoryPoint:
    time = START + 60.0 * minute
    if lead_minutes is None:
        return at(time, LoadPoint(load, None, None, None))
    return at(time, LoadPoint(load, load, load * 1.2, time + 60.0 * lead_minutes))


def places(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)]


def test_a_forecast_is_drawn_at_the_predicted_time() -> None:
    chart = load_chart_of([predicting(minute, 100.0 + minute) for minute in range(61)])
    assert chart is not None
    observed, median = places(chart.observed), places(chart.median)
    # From minute 0 to 70 the axis is 588 wide.
    assert (observed[0][0], observed[-1][0], chart.now) == (LEFT, 548.0, 548.0)
    assert (median[0][0], median[-1][0]) == (128.0, WIDTH - RIGHT)


def test_the_band_reaches_from_the_median_to_the_upper_quantile_and_is_closed() -> None:
    chart = load_chart_of([predicting(minute, 100.0) for minute in range(11)])
    assert chart is not None
    ys = {y for _, y in places(chart.band)}
    (median,) = {y for _, y in places(chart.median)}
    assert (max(ys), len(ys), chart.band.endswith("Z")) == (median, 2, True)


def test_without_a_forecast_only_the_observed_load_is_drawn() -> None:
    chart = load_chart_of([predicting(minute, 100.0, None) for minute in range(11)])
    assert chart is not None
    assert (chart.median, chart.band, chart.now) == ("", "", None)
    assert chart.summary.endswith("There is no forecast.")


def test_without_a_load_there_is_no_chart() -> None:
    assert load_chart_of([]) is None
    assert load_chart_of([at(START, None)]) is None


def test_values_that_are_not_finite_are_left_out() -> None:
    good = [predicting(minute, 100.0) for minute in range(11)]
    broken = at(START + 660.0, LoadPoint(math.inf, 1.0, math.nan, START + 900.0))
    chart, without = load_chart_of([*good, broken]), load_chart_of(good)
    assert chart is not None
    assert without is not None
    assert chart.median.count("L") == without.median.count("L")
    assert load_chart_of([broken]) is None


def test_a_gap_in_the_history_interrupts_lines_and_band() -> None:
    chart = load_chart_of([predicting(minute, 100.0) for minute in (0, 1, 2, 30, 31)])
    assert chart is not None
    assert (chart.observed.count("M"), chart.median.count("M"), chart.band.count("Z")) == (2, 2, 2)


def test_a_peak_of_one_minute_is_drawn_at_its_full_height() -> None:
    chart = load_chart_of([predicting(minute, 900.0 if minute == 700 else 100.0, None) for minute in range(1440)])
    assert chart is not None
    assert min(y for _, y in places(chart.observed)) == 8 + 0.1 * 110
    assert len(places(chart.observed)) < 320


def test_replicas_are_drawn_over_the_same_time_as_the_load() -> None:
    points = [predicting(minute, 100.0) for minute in range(61)]
    load, replicas = load_chart_of(points), chart_of(points)
    assert load is not None
    assert replicas is not None
    assert load.time_labels == replicas.time_labels


def test_the_summary_describes_the_chart() -> None:
    chart = load_chart_of([predicting(minute, 1000.0 + minute) for minute in range(61)])
    assert chart is not None
    assert chart.summary == (
        "In the last 60 minutes the load was between 1k and 1.06k; it is 1.06k now."
        " For 14:56 a median of 1.06k is expected, and capacity is planned for 1.272k."
    )


LOADS = st.floats(0, 1e15)


@given(st.lists(st.tuples(st.floats(0, 86_400), LOADS, LOADS, st.floats(0, 86_400)), min_size=1, max_size=40))
def test_every_point_is_within_the_chart(rows: list[tuple[float, float, float, float]]) -> None:
    points = [at(time, LoadPoint(load, load, load + more, time + lead)) for time, load, more, lead in sorted(rows)]
    chart = load_chart_of(points)
    assert chart is not None
    for path in (chart.observed, chart.median, chart.band):
        assert path
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places(path))
