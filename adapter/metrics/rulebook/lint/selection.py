"""Warnings about a `seriesQuery` that selects almost all series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.regex import BadPatternError, compile_pattern
from adapter.foundation.promql.tree import SelectorNode, UnreadableQueryError, parse_query
from adapter.metrics.rulebook.findings import Code
from adapter.metrics.rulebook.series import NotASelectorError, parse_series_query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.promql.tree import TreeMatcher
    from adapter.metrics.rulebook.lint.rule_positions import Place
    from adapter.metrics.rulebook.model import Finding, Rule

_ANYTHING = ("zq7_nobodys_name", "x")
"""Values that only a pattern without much meaning matches."""


def selects_everything(rule: Rule, place: Place) -> Iterator[Finding]:
    """Yield a finding if the series query restricts nothing to a value."""
    try:
        node = parse_query(rule.series_query)
    except UnreadableQueryError:
        return
    if not isinstance(node, SelectorNode) or node.alternatives or any(map(_restricts, node.matchers)):
        return
    message = (
        "`seriesQuery` selects all series of Prometheus that have such labels, at every look-up, whoever exports them; "
        "those of Tidewatch are left out"
    )
    fix = 'restrict the name, as in {__name__=~"http_.*",namespace!=""}'
    yield place.warning(Code.MATCHES_EVERYTHING, ("seriesQuery",), message, fix)


def spelled_out_name(rule: Rule) -> str | None:
    """Return the name of the series if the series query states it."""
    try:
        return parse_series_query(rule.series_query).name
    except (NotASelectorError, UnreadableQueryError):
        return None


def _restricts(matcher: TreeMatcher) -> bool:
    if matcher.operator == "=":
        return matcher.value != ""
    if matcher.operator != "=~":
        return False
    try:
        pattern = compile_pattern(matcher.value)
    except BadPatternError:
        return True
    return not all(map(pattern.matches_all_of, _ANYTHING))
