"""Analyses what a `seriesQuery` selects, as far as its text shows.

The text is parsed by the parser of query plans, so that the whole program interprets PromQL in the same way. That
parser also supports quoted names and the `or` of VictoriaMetrics.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapter.foundation.objects.regex import BadPatternError, compile_small_pattern
from adapter.foundation.promql.tree import SelectorNode, TreeMatcher
from adapter.foundation.promql.tree_parser import parse_query


class NotASelectorError(ValueError):
    """The text is an expression, by which series cannot be looked up."""


@dataclass(frozen=True, slots=True)
class SeriesSelection:
    """Properties that every selected series has."""

    name: str | None
    """Name of the series; None if the selector does not determine it."""
    present: frozenset[str]
    """Labels that have a value."""
    absent: frozenset[str]
    """Labels that are absent."""


def parse_series_query(text: str) -> SeriesSelection:
    """Return what the selector determines. Raises NotASelectorError, or UnreadableQueryError if it is not parsed."""
    node = parse_query(text)
    if not isinstance(node, SelectorNode) or node.timing:
        raise NotASelectorError("it is an expression, not a selector of series")
    if node.alternatives:
        return SeriesSelection(None, frozenset(), frozenset())
    names = {matcher.value for matcher in node.matchers if matcher.label == "__name__" and matcher.operator == "="}
    labels = [matcher for matcher in node.matchers if matcher.label != "__name__"]
    return SeriesSelection(
        name=names.pop() if len(names) == 1 else None,
        present=frozenset(matcher.label for matcher in labels if not _matches_empty(matcher)),
        absent=frozenset(matcher.label for matcher in labels if (matcher.operator, matcher.value) == ("=", "")),
    )


def _matches_empty(matcher: TreeMatcher) -> bool:
    """Return whether a series without the label may be selected."""
    if matcher.operator in ("=", "!="):
        return (matcher.value == "") == (matcher.operator == "=")
    try:
        found = compile_small_pattern(matcher.value).matches_all_of("")
    except BadPatternError:
        return True
    return found == (matcher.operator == "=~")
