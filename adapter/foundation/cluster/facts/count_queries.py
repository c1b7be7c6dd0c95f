"""Determines which objects a count is about: its selector, and whether it can be counted at all."""

from __future__ import annotations

from adapter.foundation.cluster.values.state import CountQuery, Unknown
from adapter.foundation.objects.selectors import Selector, SelectorError, parse_selector


def selector_of(query: CountQuery) -> Selector | Unknown:
    """Return the selector of a query, or the reason why nothing can be counted."""
    if query.kind == "namespaces" and query.namespace:
        return Unknown(f"namespaces are not in a namespace: remove {query.namespace!r} from the count of namespaces")
    try:
        return parse_selector(query.selector)
    except SelectorError as error:
        return Unknown(f"the selector {query.selector!r} cannot be read: {error}")
