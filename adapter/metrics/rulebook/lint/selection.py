"""Warnings about a `seriesQuery` and about patterns that select more than their author meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from adapter.foundation.documents.load import MappingNode, Node, ScalarNode, shorten
from adapter.foundation.objects.regex import BadPatternError, compile_small_pattern
from adapter.foundation.promql.quoting import is_quoted_metric_name
from adapter.foundation.promql.tree import SelectorNode, TreeMatcher
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.metrics.rulebook.findings import Code, Finding
from adapter.metrics.rulebook.provided_metrics import can_query
from adapter.metrics.rulebook.series_query import NotASelectorError, parse_series_query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.metrics.rulebook.lint.rule_positions import Place
    from adapter.metrics.rulebook.model import Rule

_WORD = re.compile(r"[A-Za-z0-9_:]+")
_ENDINGS = ("_total", "_seconds", "_bytes", "_bucket", "_count", "_sum", "_ratio", "_info", "_celsius")
"""Endings with a meaning in Prometheus's naming practice; a pattern with one is meant for the end of a name."""


def open_patterns(rule: Rule, place: Place) -> Iterator[Finding]:
    """Yield a finding for each pattern of the rule that certainly matches more names than it seems to.

    Yields none if `seriesQuery` states the name, since the patterns are then only applied to that name, nor if it or
    another pattern leaves out the longer names.
    """
    if spelled_out_name(rule) is not None:
        return
    selected, patterns = _name_patterns(rule), tuple(_patterns(place))
    wanted = [*selected, *(node.value for key, node in patterns if key != "isNot" and node.value.endswith("$"))]
    for key, node in patterns:
        text = node.value
        if _WORD.fullmatch(text):
            longer = (f"other_{text}_more", f"{text}_more", f"other_{text}")
            example = next((name for name in longer if all(_may_match(each, name) for each in selected)), None)
            if example is not None:
                message = f"`{key}` {shorten(text)!r} matches every name that contains it, such as {example}"
                fix = f"write ^{text}$ if the whole name is meant"
                yield place.warning_at(Code.UNANCHORED_PATTERN, node, message, fix)
        elif text.endswith(_ENDINGS) and not any(_ends_alike(text, each) for each in wanted):
            message = f"`{key}` {shorten(text)!r} also matches longer names, as in …_created"
            yield place.warning_at(Code.UNANCHORED_PATTERN, node, message, "end it with $")


def _name_patterns(rule: Rule) -> tuple[str, ...]:
    """Return the patterns that the whole names of the selected series match, as far as the series query shows."""
    try:
        node = parse_query(rule.series_query)
    except UnreadableQueryError:
        return ()
    if not isinstance(node, SelectorNode) or node.alternatives:
        return ()
    return tuple(matcher.value for matcher in node.matchers if (matcher.label, matcher.operator) == ("__name__", "=~"))


def _may_match(pattern: str, name: str) -> bool:
    """Return whether a pattern matches the whole name, or cannot be read."""
    try:
        return compile_small_pattern(pattern).matches_all_of(name)
    except BadPatternError:
        return True


def _ends_alike(text: str, closed: str) -> bool:
    """Return whether all names that the pattern `closed` matches end as the text does."""
    ending = next(ending for ending in _ENDINGS if text.endswith(ending))
    return "|" not in closed and closed.removesuffix("$").endswith(ending)


def _patterns(place: Place) -> Iterator[tuple[str, ScalarNode]]:
    for item in place.items("seriesFilters"):
        yield from _scalars(item, ("is", "isNot"))
    fields = place.node
    name = fields.get("name") if isinstance(fields, MappingNode) else None
    if name is not None:
        yield from _scalars(name, ("matches",))


def _scalars(node: Node, keys: tuple[str, ...]) -> Iterator[tuple[str, ScalarNode]]:
    for key in keys:
        value = node.get(key) if isinstance(node, MappingNode) else None
        if isinstance(value, ScalarNode) and value.value:
            yield key, value


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


def unquoted_series(rule: Rule, place: Place) -> Iterator[Finding]:
    """Yield a finding if `seriesQuery` states a name that the rule's query cannot contain: it serves nothing."""
    name = spelled_out_name(rule)
    if name is None or can_query(rule, name):
        return
    if is_quoted_metric_name(name):
        message = f"`metricsQuery` lacks the quotes that the name {shorten(name)!r} needs, so nothing is served"
        fix = 'write {"<<.Series>>",<<.LabelMatchers>>} for each <<.Series>>{<<.LabelMatchers>>}'
        yield place.warning(Code.UNQUOTED_SERIES, ("metricsQuery",), message, fix)
        return
    message = f"no query may contain the name {shorten(name)!r}, so nothing is served"
    fix = "give the series a name of letters, digits and _:.-/ that begins with a letter, _ or :"
    yield place.warning(Code.UNQUOTED_SERIES, ("seriesQuery",), message, fix)


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
        pattern = compile_small_pattern(matcher.value)
    except BadPatternError:
        return True
    return not all(map(pattern.matches_all_of, _ANYTHING))
