"""Finds the rule that nearly serves a metric, and what prevents it, from the rules alone; for error messages (pure).

The series of Prometheus are not known here. Instead, each rule is tried on a made-up series with the requested name, or
with the name that a counter behind it would have.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from adapter.foundation.objects.regex import BadPatternError, compile_small_pattern
from adapter.foundation.promql.tree import SelectorNode, TreeMatcher
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.metrics.rulebook.derivation import naming_obstacle
from adapter.metrics.rulebook.provided_metrics import api_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from adapter.metrics.rulebook.model import Rule

LONGEST_NAME = 256
"""Longest name that is tried: no metric has a longer one, and each takes time in a request."""
MOST_RULES = 200
"""Limit on the rules that are tried, at a few microseconds each."""
_COUNTERS = ("", "_total", "_seconds_total", "_bytes_total")
_PER_SECOND = "_per_second"
_NAME = "__name__"


class Closeness(IntEnum):
    """How closely a `seriesQuery` fits the name of a series."""

    NONE = 0
    ANY = 1
    """The query selects series of any name."""
    PATTERN = 2
    EXACT = 3


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A rule that selects series of the name."""

    rule: Rule
    series: str
    obstacle: str | None
    """Why the rule does not serve the metric; None if it only lacks series with the labels that it needs."""


@dataclass(frozen=True, slots=True)
class Selecting:
    """A rule, and the names that its `seriesQuery` selects."""

    rule: Rule
    closeness: Callable[[str], Closeness]


def with_parsed_query(rule: Rule) -> Selecting:
    """Return the rule with its parsed `seriesQuery`; takes a tenth of a millisecond."""
    return Selecting(rule, names_selected(rule.series_query) or _never_close)


def names_selected(series_query: str) -> Callable[[str], Closeness] | None:
    """Return a function that says how closely a `seriesQuery` fits a name; None if it cannot be parsed."""
    try:
        node = parse_query(series_query)
        if not isinstance(node, SelectorNode) or node.alternatives:
            return None
        conditions = [_condition(matcher) for matcher in node.matchers if matcher.label == _NAME]
    except (UnreadableQueryError, BadPatternError):
        return None
    return lambda name: _closeness(conditions, name)


def near_miss(rules: Sequence[Selecting], name: str) -> NearMiss | None:
    """Return the rule that comes closest to serving a metric of that name; None if no rule selects such series."""
    if len(name) > LONGEST_NAME:
        return None
    best: tuple[tuple[int, bool, bool], NearMiss] | None = None
    for one in rules[:MOST_RULES]:
        for series in series_for(name):
            miss = _near_miss_of(one, series, name)
            if miss is None:
                continue
            rank = (int(one.closeness(series)), miss.obstacle is None, series == name)
            if best is None or rank > best[0]:
                best = rank, miss
    return best[1] if best else None


def _near_miss_of(one: Selecting, series: str, name: str) -> NearMiss | None:
    if not one.closeness(series):
        return None
    if api_name(one.rule, series) == name:
        return NearMiss(one.rule, series, None)
    # If a rule renames a made-up series to yet another name, that helps nobody.
    return NearMiss(one.rule, series, naming_obstacle(one.rule, series)) if series == name else None


def series_for(name: str) -> Iterator[str]:
    """Yield names that a series of the metric may have."""
    yield name
    stem = name.removesuffix(_PER_SECOND)
    for ending in _COUNTERS if stem != name else _COUNTERS[1:]:
        yield stem + ending


def _condition(matcher: TreeMatcher) -> tuple[Callable[[str], bool], Closeness]:
    """Return a test of whether a name satisfies the matcher, and how close a match that is."""
    value = matcher.value
    match matcher.operator:
        case "=":
            return lambda name: name == value, Closeness.EXACT
        case "!=":
            return lambda name: name != value, Closeness.ANY
        case "=~":
            wanted = compile_small_pattern(value)
            return wanted.matches_all_of, Closeness.ANY if value in {".*", ".+"} else Closeness.PATTERN
        case _:
            unwanted = compile_small_pattern(value)
            return lambda name: not unwanted.matches_all_of(name), Closeness.ANY


def _closeness(conditions: Sequence[tuple[Callable[[str], bool], Closeness]], name: str) -> Closeness:
    if not all(holds(name) for holds, _ in conditions):
        return Closeness.NONE
    return max((closeness for _, closeness in conditions), default=Closeness.ANY)


def _never_close(_name: str) -> Closeness:
    return Closeness.NONE
