"""Finds the refused rule that would make a metric of some name, from the parts that can be read (pure).

A rule is refused for one error; the rest usually shows what it was meant to serve. If the rule were not named, users
who miss that metric would look for the cause in Prometheus.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.objects.regex import BadPatternError
from adapter.rulebook.model import Api
from adapter.rulebook.naming import NamingError, make_naming
from adapter.rulebook.near_misses import LONGEST_NAME, MOST_RULES, Closeness, names_selected, series_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adapter.rulebook.model import RefusedRule
    from adapter.rulebook.naming import Naming

_WORDS = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused rule, read as far as it goes."""

    rule: RefusedRule
    naming: Naming
    selects: Callable[[str], Closeness]
    """How much its `seriesQuery` has to do with a series of some name."""


def refusal(rule: RefusedRule) -> Refusal:
    """Return the rule with its naming and its query read; takes a tenth of a millisecond."""
    return Refusal(rule, _naming(json.loads(rule.said or "null")), _selects(rule.series_query))


def refused_for(refusals: Sequence[Refusal], name: str) -> tuple[Closeness, RefusedRule] | None:
    """Return the refused rule that would make a metric of that name, and how surely; None where none would.

    Rules that select series of any name are passed over: of those it is not known what they were to make.
    """
    if len(name) > LONGEST_NAME:
        return None
    found = [(_closeness(one, name), one.rule) for one in refusals[:MOST_RULES]]
    best = max(found, key=lambda pair: pair[0], default=None)
    return best if best is not None and best[0] > Closeness.ANY else None


def refused_of_names(rules: Iterable[RefusedRule]) -> tuple[RefusedRule, ...]:
    """Return those that feed an API whose metrics have names of their rules' choice."""
    return tuple(rule for rule in rules if rule.api is not Api.RESOURCE)


def _closeness(one: Refusal, name: str) -> Closeness:
    if one.naming.literal == one.naming.template == name:
        return Closeness.EXACT
    closest = (one.selects(series) for series in series_for(name) if one.naming.name_for(series) == name)
    return max(closest, default=Closeness.NONE)


def _naming(said: object) -> Naming:
    """Return how the rule names its metrics; as if it said nothing of that where it cannot be read."""
    stated = said.get("name") if isinstance(said, dict) else None
    matches, as_ = (stated.get(key) if isinstance(stated, dict) else None for key in ("matches", "as"))
    as_ = as_ if isinstance(as_, str) else ""
    try:
        return make_naming(matches if isinstance(matches, str) else "", as_)
    except (BadPatternError, NamingError):
        return make_naming(as_="" if "$" in as_ else as_)


def _selects(series_query: str) -> Callable[[str], Closeness]:
    """Return which names the query selects: where it cannot be read, those that stand in it."""
    readable = names_selected(series_query)
    if readable is not None:
        return readable
    words = frozenset(_WORDS.findall(series_query))
    return lambda name: Closeness.EXACT if name in words else Closeness.NONE
