from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.readiness.application_metric import MetricValueError, MissingMetricError, SeriesTotal
from adapter.readiness.selector import parse_series_choice


def total(document: str, metric: str = "open") -> float:
    found = SeriesTotal(parse_series_choice(metric))
    for line in document.encode().split(b"\n"):
        found.add(line)
    return found.total()


@pytest.mark.parametrize(
    ("document", "value"),
    [
        ("open 7", 7),
        ("open 0", 0),
        ("open +7.5", 7.5),
        ("open 2.5e4", 25_000),
        ("open 2E+4", 20_000),
        ("open .5", 0.5),
        ("open 7.", 7),
        ("open\t7\r", 7),
        ("  open   7  ", 7),
        ("open 7 1700000000000", 7),
        ("open 7 -1", 7),
        ("open 7 1700000000.123", 7),
        ('open 7 1.7e9 # {trace="1"} 1 2', 7),
        ('open 7 # {trace="1"} 1', 7),
        ("open{} 7", 7),
        ("open {} 7", 7),
        ('open{a="1"} 3\nopen{a="2"} 4', 7),
        ('open{a="1",} 7', 7),
        ('open{ a = "1" , b="}" } 7', 7),
        (r'open{a="\"} 1"} 7', 7),
        ("# HELP open 9\n# TYPE open gauge\n\nopen 7\n# EOF", 7),
        ("opened 1\nopen_total 2\nopen:x 3\nreopen 4\nopen 7", 7),
        ("other NaN\nother{ 1\n!!!\nopen 7", 7),
    ],
)
def test_variations_of_the_format_are_read(document: str, value: float) -> None:
    assert total(document) == value


@pytest.mark.parametrize(
    "line",
    [
        "open NaN",
        "open -1",
        "open +Inf",
        "open -Inf",
        "open 1e999",
        "open 1_000",
        "open 0x10",
        "open ٣",
        "open",
        "open abc",
        "open 7 later",
        "open 7 1 2",
        "open 7 1 2 3",
        'open{a="1" 7',
        'open{a="1"7',
        'open{a!="1"} 7',
        'open{a="1",a="2"} 7',
        'open{a="1',
    ],
)
def test_an_invalid_value_is_an_error_that_quotes_the_line(line: str) -> None:
    with pytest.raises(MetricValueError, match="open"):
        total(line)


def test_one_bad_series_among_good_ones_is_an_error() -> None:
    with pytest.raises(MetricValueError):
        total('open{a="1"} 7\nopen{a="2"} NaN')


def test_a_series_that_occurs_twice_is_an_error() -> None:
    with pytest.raises(MetricValueError, match="twice"):
        total('open{a="1",b="2"} 7\nopen{b="2",a="1"} 7')


def test_only_series_that_match_are_added_up() -> None:
    document = 'open{listener="public"} 3\nopen{listener="admin"} 100\nopen{listener="public",tls="yes"} 4'
    assert total(document, 'open{listener="public"}') == 7


@pytest.mark.parametrize(
    ("document", "metric", "message"),
    [
        ("", "open", "no series open"),
        ("opened 1", "open", "no series open"),
        ('open{a="1"} 1', 'open{a="2"}', "none of the 1 series of that name matches"),
    ],
)
def test_a_missing_metric_is_not_zero(document: str, metric: str, message: str) -> None:
    with pytest.raises(MissingMetricError, match=message):
        total(document, metric)


def test_the_error_about_a_long_line_is_short() -> None:
    with pytest.raises(MetricValueError) as caught:
        total(f"open {'x' * 10_000}")
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


@given(st.dictionaries(st.text(), st.integers(0, 10**9), min_size=1, max_size=5))
def test_any_label_value_survives_the_escapes(values: dict[str, int]) -> None:
    def escaped(text: str) -> str:
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    plain = {key.encode("utf-8", "ignore").decode(): value for key, value in values.items()}
    document = "\n".join(f'open{{a="{escaped(key)}"}} {value}' for key, value in plain.items())
    assert total(document) == sum(plain.values())


@given(st.text())
def test_no_line_raises_another_error(text: str) -> None:
    found = SeriesTotal(parse_series_choice("open"))
    for line in (f"open{text}", f"open{{{text}", f"open {text}"):
        try:
            found.add(line.encode("utf-8", "surrogatepass"))
        except MetricValueError:
            continue
