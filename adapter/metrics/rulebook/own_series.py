"""Tidewatch's own series, which are served only by rules that name them (pure).

Any pod that Prometheus scrapes may export series of these names, and HPAs follow them. A generic rule, such as the
default rules of prometheus-adapter, was not written for these series and says nothing about where they come from.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from adapter.foundation.promql.tree import SelectorNode
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query

if TYPE_CHECKING:
    from adapter.metrics.rulebook.model import Rule

PREFIX: Final = "tidewatch_"
_PROGRAM: Final = "tidewatch"
_CACHED_QUERIES: Final = 1024


def serves(rule: Rule, series: str) -> bool:
    """Return whether the rule may serve series of this name; for Tidewatch's own series, the rule must name them."""
    return not series.startswith(PREFIX) or names_tidewatch(rule)


def names_tidewatch(rule: Rule) -> bool:
    """Return whether `seriesQuery` or a filter names Tidewatch, as part of a series' name or as its source."""
    return filters_name_tidewatch(rule) or _query_names_tidewatch(rule.series_query)


def filters_name_tidewatch(rule: Rule) -> bool:
    """Return whether `seriesFilters` name Tidewatch."""
    return any(each.wanted and _PROGRAM in each.pattern.text for each in rule.series_filters)


@lru_cache(maxsize=_CACHED_QUERIES)
def _query_names_tidewatch(query: str) -> bool:
    try:
        node = parse_query(query)
    except UnreadableQueryError:
        return PREFIX in query
    if not isinstance(node, SelectorNode):
        return PREFIX in query
    matchers = (*node.matchers, *(matcher for each in node.alternatives for matcher in each))
    return any(matcher.operator in {"=", "=~"} and _PROGRAM in matcher.value for matcher in matchers)
