"""How far back a query looks: an empty result is no data only if Prometheus has scraped for that long."""

from __future__ import annotations

import re

from adapter.rulebook.plans.tree import Node, SelectorNode, UnreadableQueryError, Wrapper, parse_query, parts_of
from adapter.rulebook.rendering.matchers import value_matcher
from adapter.rulebook.rendering.template import PlacingError, QueryTemplate, TemplateError, template_arguments

LOOK_BACK_SECONDS = 300.0
"""Prometheus's default `--query.lookback-delta`: a series keeps the value of its last sample for this long."""

_RANGE = re.compile(r"\[([0-9.]+)")
_OFFSET = re.compile(r" offset ([0-9.]+)")
_SPELLED = re.compile(r"\[\s*((?:[0-9]+(?:ms|[smhdwy]))+)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}


def ranges_of(query: QueryTemplate) -> float:
    """Return the longest range that a `metricsQuery` looks over, in seconds, without the look-back of its end.

    Subqueries and offsets add to the ranges inside them. If the query cannot be parsed, all its ranges are added up.
    """
    data = template_arguments("madeupseries", [value_matcher("madeuplabel", "madeupvalue")], ("madeupgroup",))
    try:
        text = query.render(data)
    except (TemplateError, PlacingError):
        # The rule is refused for this elsewhere.
        return 0.0
    try:
        return _longest(parse_query(text), 0.0)
    except UnreadableQueryError:
        return sum(_spelled(found) for found in _SPELLED.findall(text))


def oldest_sample(node: Node) -> float:
    """Return the age of the oldest sample that a query may use, in seconds, with the default look-back."""
    return _longest(node, LOOK_BACK_SECONDS)


def _longest(node: Node, bare: float) -> float:
    """Return the longest range below the node; `bare` is the range of a selector that has none."""
    match node:
        case SelectorNode():
            has_range, own = _own(node.timing)
            return own if has_range else own + bare
        case Wrapper():
            return _own(node.kind)[1] + _longest(node.expression, bare)
        case _:
            return max((_longest(part, bare) for part in parts_of(node)), default=0.0)


def _own(timing: str) -> tuple[bool, float]:
    """Return whether the node has a range, and the sum of its range and offset in seconds."""
    found, offset = _RANGE.search(timing), _OFFSET.search(timing)
    return found is not None, sum(float(part[1]) for part in (found, offset) if part is not None)


def _spelled(duration: str) -> float:
    parts = re.findall(r"([0-9]+)(ms|[smhdwy])", duration)
    return sum(int(count) * _UNITS[unit] for count, unit in parts)
