"""Selects the rows of a wide answer that one requester's exact query would have selected, and folds them as it would.

A matcher sees an absent label as the empty string, and its regular expression must match the whole value. When rows are
folded, NaN and infinities are kept: the exact query would have summed them, too, and the reader of the result decides
what they mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.objects.regex import BadPatternError, compile_pattern, quote_pattern
from adapter.metrics.rulebook.requests import Fold, Row
from adapter.metrics.rulebook.templates.matchers import Matcher, RenderError, selector_matchers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.objects.selectors import Selector

RowTest: TypeAlias = "Callable[[Mapping[str, str]], bool]"
"""Returns whether a row is selected, by its labels."""

_MOST_REMEMBERED = 1000
"""Limit on cached matches of label values with a pattern."""

_MOST_LATER = 16
"""Limit on the labels that are indexed because a selector needs them, which is whatever requesters write."""


def row_filter(namespace_label: str | None, namespace: str | None, selector: Selector) -> RowTest:
    """Return a test of a row's labels that is true for the rows that the exact query's matchers select.

    Create it once for many rows. Raises RenderError for a selector that PromQL cannot express.
    """
    tests = [_test(matcher) for matcher in selector_matchers(selector)]
    if namespace_label is not None:
        tests.insert(0, _equals(namespace_label, namespace or ""))
    return _all_of(tests) if tests else lambda _: True


def select_rows(
    rows: Iterable[Row], namespace_label: str | None, namespace: str | None, selector: Selector
) -> list[Row]:
    """Return the rows that the exact query's matchers select. Raises RenderError."""
    passes = row_filter(namespace_label, namespace, selector)
    return [row for row in rows if passes(row.labels)]


class RowIndex:
    """Rows of one answer, indexed so that a selector with a label's exact value tests only rows with that value."""

    def __init__(self, labels: Iterable[str]) -> None:
        """Index the rows by these labels, which most selectors contain; the namespace label is one of them."""
        self._rows: list[Row] = []
        self._by_value: dict[str, dict[str, list[Row]]] = {label: {} for label in labels}
        self._later: dict[str, dict[str, list[Row]]] = {}
        """Rows by the value of a further label, without rows that lack it; made when a selector needs it."""

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows. May be called for one slice of rows at a time."""
        for row in rows:
            self._rows.append(row)
            for label, by_value in self._by_value.items():
                by_value.setdefault(row.labels.get(label, ""), []).append(row)

    def select(self, namespace_label: str | None, namespace: str | None, selector: Selector) -> list[Row]:
        """Return the same rows as `select_rows`. Raises RenderError."""
        wanted = [(matcher.label, matcher.value) for matcher in selector_matchers(selector) if matcher.sign == "="]
        if namespace_label is not None:
            wanted.append((namespace_label, namespace or ""))
        candidates: Sequence[Row] = self._rows
        for label, value in wanted:
            by_value = self._by_value.get(label)
            if by_value is not None:
                candidates = min(candidates, by_value.get(value, ()), key=len)
        if candidates is self._rows:
            label, value = next(((label, value) for label, value in wanted if value), ("", ""))
            if label:
                candidates = self._index_later(label).get(value, ())
        return select_rows(candidates, namespace_label, namespace, selector)

    def _index_later(self, label: str) -> Mapping[str, Sequence[Row]]:
        """Return the rows that have the label, by its value; testing all rows for one selector takes as long."""
        by_value = self._later.get(label)
        if by_value is None:
            by_value = {}
            for row in self._rows:
                if own := row.labels.get(label, ""):
                    by_value.setdefault(own, []).append(row)
            if len(self._later) >= _MOST_LATER:
                self._later = {}
            self._later[label] = by_value
        return by_value


def _all_of(tests: Sequence[RowTest]) -> RowTest:
    """Return a test that is true if all of these are, of which there is at least one."""
    # Halved and not chained: Python's stack has room for a thousand calls, and a selector may have more requirements.
    middle = len(tests) // 2
    return _both(_all_of(tests[:middle]), _all_of(tests[middle:])) if middle else tests[0]


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
        # It is anchored as in Prometheus 3: `.` is any character, including a line feed.
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


def fold_rows(fold: Fold, rows: Iterable[Row]) -> list[Row]:
    """Return the requester's answer from the rows that were selected for it."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        # An empty label is the same as an absent one.
        groups.setdefault(tuple(row.labels.get(label, "") for label in fold.by), []).append(row.value)
    if not groups and fold.default is not None:
        return [Row({}, fold.default)]
    combine = _COMBINE[fold.operator]
    return [
        Row({label: value for label, value in zip(fold.by, group, strict=True) if value}, combine(values))
        for group, values in groups.items()
    ]


def _sum(values: Sequence[float]) -> float:
    # Not math.fsum, which raises an error for infinities of both signs, although their sum is NaN.
    return sum(values)


def _smallest(values: Sequence[float]) -> float:
    """Return the smallest value as PromQL's `min` does: NaN only if all values are NaN."""
    return min((value for value in values if not math.isnan(value)), default=math.nan)


def _largest(values: Sequence[float]) -> float:
    return max((value for value in values if not math.isnan(value)), default=math.nan)


_COMBINE: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": _sum,
    "count": _sum,
    "min": _smallest,
    "max": _largest,
}
