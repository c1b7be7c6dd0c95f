"""Finds the refused rule that would provide a metric, from the parts of the rule that can be read (pure).

A rule is refused for one error; the rest usually shows which metrics it was meant to provide. If the rule were not
named, users who miss such a metric would look for the cause in Prometheus.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from adapter.foundation.objects.regex import BadPatternError
from adapter.metrics.rulebook.model import Api, RefusedRule
from adapter.metrics.rulebook.naming import Naming, NamingError, make_naming
from adapter.metrics.rulebook.near_misses import LONGEST_NAME, MOST_RULES, Closeness, names_selected, series_for
from adapter.metrics.rulebook.parsing.refused import stated_name

_WORDS = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True, slots=True)
class RefusedMiss:
    """A refused rule, with what can be read of it."""

    rule: RefusedRule
    naming: Naming
    selects: Callable[[str], Closeness]
    """Returns how closely the rule's `seriesQuery` fits a series of a given name."""


def refusal(rule: RefusedRule) -> RefusedMiss:
    """Return the rule with its naming and its `seriesQuery` parsed; takes a tenth of a millisecond."""
    return RefusedMiss(rule, _naming(*stated_name(rule)), _selects(rule.series_query))


def refused_for(refusals: Sequence[RefusedMiss], name: str) -> tuple[Closeness, RefusedRule] | None:
    """Return the refused rule that would provide a metric of that name, and how certain that is; None if no rule would.

    Rules that select series of any name are skipped, since it is unknown which metrics they were meant to provide.
    """
    if len(name) > LONGEST_NAME:
        return None
    found = [(_closeness(one, name), one.rule) for one in refusals[:MOST_RULES]]
    best = max(found, key=lambda pair: pair[0], default=None)
    return best if best is not None and best[0] > Closeness.ANY else None


def refused_of_names(rules: Iterable[RefusedRule]) -> tuple[RefusedRule, ...]:
    """Return the refused rules for those APIs in which a rule chooses the names of its metrics."""
    return tuple(rule for rule in rules if rule.api is not Api.RESOURCE)


def _closeness(one: RefusedMiss, name: str) -> Closeness:
    if one.naming.literal == one.naming.template == name:
        return Closeness.EXACT
    closest = (one.selects(series) for series in series_for(name) if one.naming.name_for(series) == name)
    return max(closest, default=Closeness.NONE)


def _naming(matches: str, as_: str) -> Naming:
    """Return how the rule names its metrics; what cannot be read is replaced by the default."""
    try:
        return make_naming(matches, as_)
    except (BadPatternError, NamingError):
        return make_naming(as_="" if "$" in as_ else as_)


def _selects(series_query: str) -> Callable[[str], Closeness]:
    """Return a function that says how closely the query fits a name; if unparsable, only words in it fit."""
    readable = names_selected(series_query)
    if readable is not None:
        return readable
    words = frozenset(_WORDS.findall(series_query))
    return lambda name: Closeness.EXACT if name in words else Closeness.NONE
