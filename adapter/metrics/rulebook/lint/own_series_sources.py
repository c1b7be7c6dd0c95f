"""Warnings about rules that serve series with the names of Tidewatch's own, whoever exports them.

An HPA follows what the recommender publishes. Any pod that Prometheus scrapes may export series of the same names, and
only the labels that Prometheus itself adds say where a series comes from.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.regex import BadPatternError, compile_small_pattern
from adapter.foundation.promql.tree import SelectorNode, TreeMatcher, selectors_of
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.metrics.rulebook.findings import Code, Finding
from adapter.metrics.rulebook.lint.queries import example_query
from adapter.metrics.rulebook.own_series import PREFIX, filters_name_tidewatch
from adapter.metrics.rulebook.query_rendering import RenderError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.metrics.rulebook.lint.rule_positions import Place
    from adapter.metrics.rulebook.model import Metric, Rule

_EXPORTED: Final = frozenset(
    {
        "__name__",
        "container",
        "model",
        "node_group",
        "quantile",
        "recommendation",
        "resource",
        "target_kind",
        "target_name",
        "target_namespace",
    }
)
"""Labels that the exporter itself writes, so a matcher on them excludes nobody."""
_NOBODYS_SOURCE: Final = "zq7_nobodys_source"


def takes_anybodys_series(rule: Rule, example: Metric | None, place: Place) -> Iterator[Finding]:
    """Yield a finding if the rule takes series of Tidewatch without a matcher on where they come from.

    `example` is a metric that the rule provides, if it provides any.
    """
    if filters_name_tidewatch(rule) and _has_no_source(rule.series_query):
        yield _finding(place, "seriesFilters")
        return
    texts = [("seriesQuery", rule.series_query)]
    if example is not None:
        with suppress(RenderError):
            texts.append(("metricsQuery", example_query(example)))
    for key, text in texts:
        if _is_open(text):
            yield _finding(place, key)
            return


def _finding(place: Place, key: str) -> Finding:
    message = f"`{key}` takes series of Tidewatch from every pod that exports such names, and HPAs follow them"
    fix = 'add a matcher on their source, as in {namespace="tidewatch"}, to `seriesQuery` and `metricsQuery`'
    return place.warning(Code.SERIES_OF_ANYBODY, (key,), message, fix)


def _has_no_source(query: str) -> bool:
    return not all(any(map(_names_source, each.matchers)) for each in _selectors_of(query))


def _is_open(query: str) -> bool:
    return any(
        any(map(_is_ours, each.matchers)) and not any(map(_names_source, each.matchers))
        for each in _selectors_of(query)
    )


def _selectors_of(query: str) -> list[SelectorNode]:
    try:
        return list(selectors_of(parse_query(query)))
    except UnreadableQueryError:
        # The rule reader has already reported this.
        return []


def _is_ours(matcher: TreeMatcher) -> bool:
    """Return whether the matcher selects series of Tidewatch by their names."""
    names = matcher.label == "__name__" and matcher.operator in {"=", "=~"}
    return names and matcher.value.lstrip("^(").startswith(PREFIX)


def _names_source(matcher: TreeMatcher) -> bool:
    """Return whether the matcher excludes series from other sources."""
    if matcher.label in _EXPORTED or matcher.operator not in {"=", "=~"}:
        return False
    if matcher.operator == "=":
        return True
    try:
        return not compile_small_pattern(matcher.value).matches_all_of(_NOBODYS_SOURCE)
    except BadPatternError:
        return True
