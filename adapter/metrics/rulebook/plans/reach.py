"""Determines how far back the query of a rule looks.

Prometheus must have scraped for that long before an empty result means that there is no data.
"""

from __future__ import annotations

import re

from adapter.foundation.promql.reach import longest_range
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.metrics.rulebook.templates.matchers import value_matcher
from adapter.metrics.rulebook.templates.template import PlacingError, QueryTemplate, TemplateError, template_arguments

LONGEST_SECONDS = 2.0**63 / 1e9
"""The longest duration that Prometheus can read; a longer one counts as this."""
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
        return longest_range(parse_query(text))
    except UnreadableQueryError:
        return sum(_duration_seconds(found) for found in _SPELLED.findall(text))


def _duration_seconds(duration: str) -> float:
    parts = re.findall(r"([0-9]+)(ms|[smhdwy])", duration)
    # Not as an int: Python reads only some thousands of its digits, and a float holds only some hundreds.
    return min(LONGEST_SECONDS, sum(float(count) * _UNITS[unit] for count, unit in parts))
