from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.durations import (
    DurationError,
    format_duration,
    format_go_duration,
    go_nanoseconds,
    parse_duration,
    parse_go_duration,
    parse_prometheus_duration,
)


@given(st.integers(min_value=-(2**52), max_value=2**52))
def test_a_formatted_go_duration_is_read_back(nanoseconds: int) -> None:
    assert go_nanoseconds(format_go_duration(nanoseconds / 1e9)) == nanoseconds


@given(st.lists(st.integers(min_value=0, max_value=9), min_size=7, max_size=7))
def test_prometheus_units_add_up(counts: list[int]) -> None:
    sizes = {"y": 31536000.0, "w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    text = "".join(f"{count}{unit}" for count, unit in zip(counts, sizes, strict=True))
    total = sum(count * size for count, size in zip(counts, sizes.values(), strict=True))
    assert parse_prometheus_duration(text) == pytest.approx(total)


@given(st.text(alphabet="0123456789.+-nuµmshdwy ٣", max_size=12))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    for parse in (parse_go_duration, parse_prometheus_duration):
        try:
            seconds = parse(text)
        except DurationError:
            continue
        assert abs(seconds) < 2**34


@pytest.mark.parametrize("text", ["9" * 5000 + "s", "0." + "9" * 5000 + "s", "0" * 5000 + "1s"])
def test_long_numbers_are_read_or_refused_at_once(text: str) -> None:
    if text.startswith("9"):
        with pytest.raises(DurationError, match="292 years"):
            parse_go_duration(text)
        with pytest.raises(DurationError):
            parse_prometheus_duration(text)
    else:
        assert parse_go_duration(text) == pytest.approx(1.0)


def test_durations_are_returned_in_seconds() -> None:
    assert parse_go_duration("1m30.5s") == 90.5
    assert parse_prometheus_duration("1m30s500ms") == 90.5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("5", "a number has no unit"),
        ("", "it is empty"),
        ("5d", "'d' is not a unit"),
        ("s", "no number stands before 's'"),
    ],
)
def test_the_error_for_a_go_duration_has_the_reason(text: str, why: str) -> None:
    with pytest.raises(DurationError, match=why):
        parse_go_duration(text)


def test_the_error_for_a_prometheus_duration_names_the_order_of_units() -> None:
    with pytest.raises(DurationError, match="'30m1h' is not a Prometheus duration: write units from large to small"):
        parse_prometheus_duration("30m1h")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1d", 86_400),
        ("1w2d", 777_600),
        ("1.5h", 5400),
        ("1m90s", 150),
        ("1y", 31_536_000),
        ("500us", 0.0005),
        ("0", 0),
    ],
)
def test_a_tidewatch_duration_may_have_units_of_go_and_of_prometheus(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@given(st.text(alphabet="0123456789.+-nuµmshdwy ٣", max_size=12))
def test_every_go_or_prometheus_duration_is_a_tidewatch_duration(text: str) -> None:
    for parse in (parse_go_duration, parse_prometheus_duration):
        try:
            seconds = parse(text)
        except DurationError:
            continue
        assert parse_duration(text) == seconds


@given(st.integers(min_value=0, max_value=2**52))
def test_a_formatted_duration_is_read_back(nanoseconds: int) -> None:
    seconds = nanoseconds / 1e9
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (90, "1m30s"), (3600, "1h"), (129_600, "1d12h")])
def test_formatted_durations_omit_zero_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
