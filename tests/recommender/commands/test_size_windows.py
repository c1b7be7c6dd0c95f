from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.running.usage.usage_queries import Resolution, namespace_matcher, resolution_of
from recommender.running.usage.usage_window import MOST_POINTS, SizeWindow

END = 1_767_225_600.0
DAY = 86_400


@given(st.integers(3600, 40 * DAY), st.integers(0, 200_000), st.sampled_from((300, 600, 2100, 3600)))
def test_each_step_is_in_exactly_one_slice_of_its_day(seconds: int, series: int, step: int) -> None:
    window = SizeWindow(END, seconds)
    moments: list[int] = []
    for part in window.slices(series, step):
        found = range(int(part.start), int(part.end) + 1, step)
        assert len(found) * series <= max(MOST_POINTS, series)
        assert {int(END - at) // DAY for at in found} == {part.day}
        assert part.day < window.days
        moments += found
    assert sorted(moments) == list(range(int(END), int(END - seconds), -step))[::-1]


@pytest.mark.parametrize(
    ("scrape_seconds", "resolution"),
    [
        (15.0, Resolution(300, 300)),
        (60.0, Resolution(300, 300)),
        (120.0, Resolution(300, 300)),
        # A rate needs two samples in its time.
        (300.0, Resolution(300, 660)),
        (900.0, Resolution(900, 1860)),
    ],
)
def test_rates_look_back_over_two_samples(scrape_seconds: float, resolution: Resolution) -> None:
    assert resolution_of(scrape_seconds) == resolution


@pytest.mark.parametrize(
    ("namespaces", "matcher"),
    [((), ""), (("shop",), ',namespace="shop"'), (("shop", "a.b"), ',namespace=~"a\\\\.b|shop"')],
)
def test_namespaces_are_matched_exactly(namespaces: tuple[str, ...], matcher: str) -> None:
    assert namespace_matcher(namespaces) == matcher
