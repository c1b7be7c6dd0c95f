"""Determines whether a query still has the series that it had a while ago (pure).

A sum becomes smaller if the load falls, but also if targets cannot be scraped, or while a Prometheus that has just
started scrapes its first targets. Then its selectors have fewer series than before, or had none. If it has old data, an
instant selector still finds all series for minutes, but a range lacks those of targets that are not scraped yet.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from adapter.foundation.promql.tree import Call, all_nodes
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from recommender.running.queries.sample_times import current_selectors, selector_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adapter.foundation.promql.tree import SelectorNode
    from adapter.foundation.sources.prometheus.answers.decoding import Sample

_NOW: Final = "tidewatch_now"
"""Label with the number of a selector, on the number of its series now."""
_EARLIER: Final = "tidewatch_earlier"
_RANGE: Final = re.compile(r"\[([0-9.]+)\]")
_OF_TWO_SAMPLES: Final = frozenset(
    {"delta", "deriv", "double_exponential_smoothing", "holt_winters", "idelta", "increase", "irate"}
    | {"predict_linear", "rate"}
)
"""Functions that return nothing for a series with a single sample in the range."""


def series_query(query: str, seconds: float) -> str:
    """Return a query for the number of series of each selector, now and that many seconds ago.

    It is empty if `query` cannot be read, or reads no current samples: then nothing can be said about its series.
    """
    try:
        tree = parse_query(query)
    except UnreadableQueryError:
        return ""
    selectors = current_selectors(tree)
    if any(selector.alternatives for selector in selectors):
        return ""
    calls = (node for node in all_nodes(tree) if isinstance(node, Call) and node.function in _OF_TWO_SAMPLES)
    of_two = {argument for call in calls for argument in call.arguments}
    counted = dict.fromkeys(
        pair for selector in selectors for pair in _counted(selector, seconds, of_two=selector in of_two)
    )
    return " or ".join(
        part
        for number, (now, earlier) in enumerate(counted)
        for part in (_labelled(now, _NOW, number), _labelled(earlier, _EARLIER, number))
    )


def _counted(selector: SelectorNode, seconds: float, *, of_two: bool) -> Iterator[tuple[str, str]]:
    """Yield the numbers of the series of a selector, now and earlier, and of those with samples in its range.

    With `of_two`, one sample is not enough. A range that had none because the server was down is compared with what an
    instant selector found then.
    """
    earlier_ones = f"count({selector_text(selector, seconds)})"
    yield f"count({selector_text(selector)})", earlier_ones
    found = _RANGE.match(selector.timing)
    if found is None:
        return
    now, earlier = (selector_text(selector, ago, float(found[1])) for ago in (0.0, seconds))
    if of_two:
        now, earlier = f"count(count_over_time({now}) > 1)", f"count(count_over_time({earlier}) > 1)"
    else:
        now, earlier = f"count(last_over_time({now}))", f"count(last_over_time({earlier}))"
    yield now, f"{earlier} or {earlier_ones}"


def has_all_series(counts: Iterable[Sample]) -> bool:
    """Return whether there were series, and no selector has fewer now; `counts` is the answer to `series_query`."""
    numbers = {(label, part): sample.value for sample in counts for label, part in sample.labels.items()}
    earlier = {part: number for (label, part), number in numbers.items() if label == _EARLIER}
    return bool(earlier) and all(numbers.get((_NOW, part), 0.0) >= number for part, number in earlier.items())


def _labelled(count: str, label: str, number: int) -> str:
    return f'label_replace({count}, "{label}", "{number}", "", "")'
