"""Determines how far back the query of a rule looks.

Prometheus must have scraped for that long before an empty result means that there is no data.
"""

from __future__ import annotations

from adapter.foundation.promql.reach import longest_range, spelled_offsets, spelled_ranges
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.metrics.rulebook.templates.matchers import value_matcher
from adapter.metrics.rulebook.templates.template import PlacingError, QueryTemplate, TemplateError, template_arguments


def ranges_of(query: QueryTemplate) -> float:
    """Return the longest range that a `metricsQuery` looks over, in seconds, without the look-back of its end.

    Subqueries and offsets add to the ranges inside them. If the query cannot be parsed, each subquery counts as if it
    were around all ranges before it, and all offsets are added; the result is infinite if one of these times is
    computed, as in `[2 * 1h]`.
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
        return spelled_ranges(text) + spelled_offsets(text)
