"""The chart shows the last day."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from recommender.decisions.history_point import HistoryPoint
from recommender.page.axes import HEIGHT, LARGEST_GAP_SECONDS, WIDTH
from recommender.page.size_chart import chart_of

DAY = 86400.0


def points(*values: int | None, every: float = 60.0) -> list[HistoryPoint]:
    return [HistoryPoint(1_000_000.0 + number * every, value, "ok", None, None) for number, value in enumerate(values)]


def test_without_a_value_there_is_no_chart() -> None:
    assert chart_of([]) is None
    assert chart_of(points(None, None)) is None


def test_a_value_is_drawn_until_the_next_one() -> None:
    chart = chart_of(points(2, 4, 4))
    assert chart is not None
    assert re.fullmatch(r"M[\d.]+ [\d.]+h0H[\d.]+V[\d.]+H632", chart.recommended)


def test_a_day_without_a_change_is_one_short_line() -> None:
    chart = chart_of(points(*[3] * 1440))
    assert chart is not None
    assert re.fullmatch(r"M44 [\d.]+h0H632", chart.recommended)


def test_a_value_before_a_gap_is_drawn_until_the_gap() -> None:
    chart = chart_of(points(2, 2, None, 2))
    assert chart is not None
    assert re.fullmatch(r"M[\d.]+ [\d.]+h0H[\d.]+M632 [\d.]+h0", chart.recommended)


def test_a_missing_value_interrupts_the_line() -> None:
    chart = chart_of(points(2, None, 2))
    assert chart is not None
    assert chart.recommended.count("M") == 2


def test_a_gap_in_the_history_interrupts_the_line() -> None:
    chart = chart_of(points(2, 2, every=LARGEST_GAP_SECONDS + 1))
    assert chart is not None
    assert chart.recommended.count("M") == 2


def test_the_summary_describes_the_chart() -> None:
    chart = chart_of(points(*[2] * 100, *[7] * 100, *[3] * 100))
    assert chart is not None
    assert chart.summary == (
        "In the last 5 hours the recommendation was between 2 and 7 replicas and changed 2 times; it is 3 now."
    )


@given(st.lists(st.tuples(st.floats(0, DAY), st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=40))
def test_every_line_stays_within_the_chart(values: list[tuple[float, int, int]]) -> None:
    chart = chart_of([HistoryPoint(time, replicas, "ok", None, current) for time, replicas, current in sorted(values)])
    assert chart is not None
    for path in (chart.recommended, chart.current):
        xs = [float(x) for x in re.findall(r"[MH]([\d.]+)", path)]
        ys = [float(y) for y in re.findall(r"(?:V|M[\d.]+ )([\d.]+)", path)]
        assert all(0 <= x <= WIDTH for x in xs)
        assert all(0 <= y <= HEIGHT for y in ys)
