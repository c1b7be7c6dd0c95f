"""Determines whether a query still has the series that it had a while ago (pure).

A sum becomes smaller if the load falls, but also if targets cannot be scraped, or while a Prometheus that has just
started without data scrapes its first targets. Then its selectors have fewer series than before, or had none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from recommender.running.queries.sample_times import current_selectors, selector_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.sources.prometheus.answers.decoding import Sample

_NOW: Final = "tidewatch_now"
"""Label with the number of a selector, on the number of its series now."""
_EARLIER: Final = "tidewatch_earlier"


def series_query(query: str, seconds: float) -> str:
    """Return a query for the number of series of each selector, now and that many seconds ago.

    It is empty if `query` cannot be read, or reads no current samples: then nothing can be said about its series.
    """
    try:
        selectors = current_selectors(parse_query(query))
    except UnreadableQueryError:
        return ""
    if any(selector.alternatives for selector in selectors):
        return ""
    by_text = {selector_text(selector): selector_text(selector, seconds) for selector in selectors}
    return " or ".join(
        part
        for number, (now, earlier) in enumerate(by_text.items())
        for part in (_labelled(now, _NOW, number), _labelled(earlier, _EARLIER, number))
    )


def has_all_series(counts: Iterable[Sample]) -> bool:
    """Return whether there were series, and no selector has fewer now; `counts` is the answer to `series_query`."""
    numbers = {(label, part): sample.value for sample in counts for label, part in sample.labels.items()}
    earlier = {part: number for (label, part), number in numbers.items() if label == _EARLIER}
    return bool(earlier) and all(numbers.get((_NOW, part), 0.0) >= number for part, number in earlier.items())


def _labelled(selector: str, label: str, number: int) -> str:
    return f'label_replace(count({selector}), "{label}", "{number}", "", "")'
