"""The rows of a wide answer, for one asker: filtered as Prometheus would have, and folded as the query would have.

A matcher sees an absent label as the empty string, and its regular expression must match the whole value. Folding
keeps NaN and infinities: the exact query would have summed them too, and the reader of the result decides what a value
that is not a number means.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

from adapter.objects.regex import BadPatternError, compile_pattern, quote_pattern
from adapter.rulebook.rendering.matchers import RenderError, selector_matchers
from adapter.rulebook.requests import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from adapter.objects.selectors import Selector
    from adapter.rulebook.rendering.matchers import Matcher
    from adapter.rulebook.requests import Fold

RowTest: TypeAlias = "Callable[[Mapping[str, str]], bool]"
"""Tells by a row's labels whether it is meant."""

_MOST_REMEMBERED = 1000
"""Values of a label whose match with a pattern is remembered."""


def row_filter(namespace_label: str | None, namespace: str | None, selector: Selector) -> RowTest:
    """Return a test of a row's labels that is true for what the exact query's matchers would have let through.

    Make it once for many rows. Raises RenderError for a selector that PromQL cannot say.
    """
    tests = [_test(matcher) for matcher in selector_matchers(selector)]
    if namespace_label is not None:
        tests.insert(0, _equals(namespace_label, namespace or ""))
    return reduce(_both, tests) if tests else lambda _: True


def select_rows(
    rows: Iterable[Row], namespace_label: str | None, namespace: str | None, selector: Selector
) -> list[Row]:
    """Return the rows that the exact query's matchers would have let through; raises RenderError."""
    passes = row_filter(namespace_label, namespace, selector)
    return [row for row in rows if passes(row.labels)]


def fold_rows(fold: Fold, rows: Iterable[Row]) -> list[Row]:
    """Return the asker's answer, made of the rows that were selected for it."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        # An empty label is an absent one.
        groups.setdefault(tuple(row.labels.get(label, "") for label in fold.by), []).append(row.value)
    if not groups and fold.default is not None:
        return [Row({}, fold.default)]
    combine = _COMBINE[fold.operator]
    return [
        Row({label: value for label, value in zip(fold.by, group, strict=True) if value}, combine(values))
        for group, values in groups.items()
    ]


class RowIndex:
    """Rows of one answer, for many selectors: those that ask for a label's exact value see only the rows with it."""

    def __init__(self, labels: Iterable[str]) -> None:
        """Prepare for selectors that mostly ask for these labels, the namespace label among them."""
        self._rows: list[Row] = []
        self._by_value: dict[str, dict[str, list[Row]]] = {label: {} for label in labels}

    def add(self, rows: Iterable[Row]) -> None:
        """Take in rows: a slice at a time, where that is wanted."""
        for row in rows:
            self._rows.append(row)
            for label, by_value in self._by_value.items():
                by_value.setdefault(row.labels.get(label, ""), []).append(row)

    def select(self, namespace_label: str | None, namespace: str | None, selector: Selector) -> list[Row]:
        """Return what `select_rows` does; raises RenderError."""
        wanted = [(matcher.label, matcher.value) for matcher in selector_matchers(selector) if matcher.sign == "="]
        if namespace_label is not None:
            wanted.append((namespace_label, namespace or ""))
        candidates: Sequence[Row] = self._rows
        for label, value in wanted:
            by_value = self._by_value.get(label)
            if by_value is not None:
                candidates = min(candidates, by_value.get(value, ()), key=len)
        return select_rows(candidates, namespace_label, namespace, selector)


def _both(one: RowTest, other: RowTest) -> RowTest:
    return lambda labels: one(labels) and other(labels)


def _test(matcher: Matcher) -> RowTest:
    label, value = matcher.label, matcher.value
    match matcher.sign:
        case "=":
            return _equals(label, value)
        case "!=":
            return lambda labels: labels.get(label, "") != value
        case "=~":
            return _matches(label, value, wanted=True)
        case _:
            return _matches(label, value, wanted=False)


def _equals(label: str, value: str) -> RowTest:
    return lambda labels: labels.get(label, "") == value


def _matches(label: str, pattern: str, *, wanted: bool) -> RowTest:
    values = pattern.split("|")
    if all(value == quote_pattern(value) for value in values):
        literal = frozenset(values)
        return lambda labels: (labels.get(label, "") in literal) is wanted
    try:
        # As Prometheus 3 anchors it: `.` is any character, a line feed too.
        compiled = compile_pattern(f"(?s:{pattern})")
    except BadPatternError as e:
        raise RenderError(f"{pattern!r} for {label} is not a regular expression: {e}") from e
    remembered: dict[str, bool] = {}

    def passes(labels: Mapping[str, str]) -> bool:
        value = labels.get(label, "")
        known = remembered.get(value)
        if known is None:
            known = compiled.matches_all_of(value) is wanted
            if len(remembered) < _MOST_REMEMBERED:
                remembered[value] = known
        return known

    return passes


def _sum(values: Sequence[float]) -> float:
    # Not math.fsum, which refuses infinities of both signs where the sum is NaN.
    return sum(values)


def _smallest(values: Sequence[float]) -> float:
    """Return the smallest value as PromQL's `min` does: NaN only if all are."""
    return min((value for value in values if not math.isnan(value)), default=math.nan)


def _largest(values: Sequence[float]) -> float:
    return max((value for value in values if not math.isnan(value)), default=math.nan)


_COMBINE: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": _sum,
    "count": _sum,
    "min": _smallest,
    "max": _largest,
}
