"""Results of Go's own libraries, kept as a table: this project accepts and prints what a Kubernetes client does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from adapter.foundation.objects.durations import (
    DurationError,
    format_go_duration,
    go_nanoseconds,
    parse_prometheus_duration,
)
from adapter.foundation.objects.quantities import QuantityError, parse_quantity
from adapter.foundation.objects.selectors import SelectorError, parse_selector

GO: Final[dict[str, Any]] = json.loads(Path(__file__).with_name("go_results.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("text", "canonical", "form", "milli"), GO["quantities"])
def test_quantities_are_parsed_as_in_go(text: str, canonical: str | None, form: str, milli: int | None) -> None:
    if canonical is None:
        with pytest.raises(QuantityError):
            parse_quantity(text)
        return
    quantity = parse_quantity(text)
    assert (str(quantity), quantity.format) == (canonical, form)
    assert milli is None or quantity.milli_value() == milli


@pytest.mark.parametrize(("text", "canonical", "matches"), GO["selectors"])
def test_selectors_are_parsed_as_in_go(text: str, canonical: str | None, matches: list[bool]) -> None:
    if canonical is None:
        with pytest.raises(SelectorError):
            parse_selector(text)
        return
    selector = parse_selector(text)
    assert str(selector) == canonical
    assert [selector.matches(labels) for labels in GO["selector_labels"]] == matches


@pytest.mark.parametrize(("text", "nanoseconds", "printed"), GO["go_durations"])
def test_go_durations_are_parsed_and_printed_as_in_go(text: str, nanoseconds: int | None, printed: str | None) -> None:
    if nanoseconds is None:
        with pytest.raises(DurationError):
            go_nanoseconds(text)
        return
    assert go_nanoseconds(text) == nanoseconds
    # Seconds as a float are exact to the nanosecond for about 52 days.
    assert abs(nanoseconds) > 2**52 or format_go_duration(nanoseconds / 1e9) == printed


@pytest.mark.parametrize(("text", "nanoseconds"), GO["prometheus_durations"])
def test_prometheus_durations_are_parsed_as_in_go(text: str, nanoseconds: int | None) -> None:
    if nanoseconds is None:
        with pytest.raises(DurationError):
            parse_prometheus_duration(text)
        return
    assert parse_prometheus_duration(text) == nanoseconds / 1e9
