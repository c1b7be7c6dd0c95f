from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.commands.past_span import parse_moment
from recommender.decisions.texts.times import rfc3339

NOW = 1_796_000_000.5


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("now", NOW),
        ("-14d", NOW - 14 * 86_400),
        ("-1d12h", NOW - 1.5 * 86_400),
        ("2026-11-01", 1_793_491_200.0),
        ("2026-11-01T06:00:00Z", 1_793_512_800.0),
        ("2026-11-01T06:00:00+01:00", 1_793_509_200.0),
    ],
)
def test_a_time_is_a_timestamp_a_date_or_a_duration_ago(text: str, seconds: float) -> None:
    assert parse_moment(text, NOW) == seconds


@pytest.mark.parametrize(
    "text", ["", "-", "14d", "+14d", "-14", "--14d", "-300y", "2026-13-01", "2026-02-30", "2026-11", "yesterday"]
)
def test_any_other_text_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a time: write 2026-11-21T06:00:00Z, a date .* such as -14d"):
        parse_moment(text, NOW)


@given(st.integers(0, 4_000_000_000))
def test_a_printed_time_is_parsed_again(seconds: int) -> None:
    printed = rfc3339(seconds)
    assert parse_moment(printed, NOW) == seconds
    assert parse_moment(printed[:10], NOW) == seconds - seconds % 86_400


@given(st.integers(0, 10_000), st.sampled_from([("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("w", 604_800)]))
def test_a_duration_ago_is_relative_to_now(count: int, unit: tuple[str, int]) -> None:
    assert parse_moment(f"-{count}{unit[0]}", NOW) == NOW - count * unit[1]


@given(st.text(alphabet="0123456789-:TZdhmsnow+. ", max_size=24))
def test_any_text_is_a_time_or_gets_an_explanation(text: str) -> None:
    try:
        found, explained = parse_moment(text, NOW), ""
    except ValueError as error:
        found, explained = 0.0, str(error)
    assert abs(found) < 1e12
    assert explained.startswith(f"{text!r} is not a time: ") or not explained
