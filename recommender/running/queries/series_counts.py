"""Determines the value of a query that still has the series that it had a while ago (pure).

A sum becomes smaller if the load falls, but also if targets cannot be scraped, or while a Prometheus that has just
started scrapes its first targets. Then its selectors have fewer series than before, or had none. If it has old data, an
instant selector still finds all series for minutes, but a range lacks those of targets that are not scraped yet.

The value is requested together with the numbers: in another answer, it might be that of another server behind the same
address, or of the moment before the last targets were scraped.
"""

from __future__ import annotations

import math
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from adapter.foundation.promql.reach import LOOK_BACK_SECONDS
from adapter.foundation.promql.tree import Call, all_nodes, is_scalar
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from recommender.running.queries.sample_times import current_selectors, selector_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapter.foundation.promql.tree import SelectorNode
    from adapter.foundation.sources.prometheus.answers.decoding import Sample

_VALUE: Final = "tidewatch_value"
"""Label of the value of the query itself."""
_NOW: Final = "tidewatch_now"
"""Label with the number of a selector, on the number of its series now."""
_EARLIER: Final = "tidewatch_earlier"
_RANGE: Final = re.compile(r"\[([0-9.]+)\]")
_OF_TWO_SAMPLES: Final = MappingProxyType(
    {each: each for each in ("delta", "deriv", "idelta", "increase", "irate", "rate")}
    | dict.fromkeys(("double_exponential_smoothing", "holt_winters", "predict_linear"), "deriv")
)
"""Functions that return nothing for a series with too few samples in the range, each with one that tells where.

VictoriaMetrics needs one sample less, since it also uses the last one before the range, so samples are not counted.
"""
_LONG_RANGE_SECONDS: Final = 2 * LOOK_BACK_SECONDS
"""If the newest sample is younger than the look-back, a range of this length has many others beside it."""


def series_query(query: str, seconds: float) -> str:
    """Return a query for the value of `query`, and for the series of each selector, now and that many seconds ago.

    It is empty if `query` cannot be read, or reads no current samples: then nothing can be said about its series.
    """
    try:
        tree = parse_query(query)
    except UnreadableQueryError:
        return ""
    selectors = current_selectors(tree)
    if not selectors or any(selector.alternatives for selector in selectors):
        return ""
    calls = (node for node in all_nodes(tree) if isinstance(node, Call) and node.function in _OF_TWO_SAMPLES)
    functions = {argument: _OF_TWO_SAMPLES[call.function] for call in calls for argument in call.arguments}
    counted = dict.fromkeys(
        pair
        for selector in selectors
        for pair in _counted(selector, seconds, functions.get(selector, "last_over_time"))
    )
    # A comment may end the query.
    parts = [_labelled(f"{'vector' if is_scalar(tree) else ''}({query}\n)", _VALUE, 0)]
    for number, (now, earlier) in enumerate(counted):
        parts += [_labelled(now, _NOW, number), _labelled(earlier, _EARLIER, number)]
    return " or ".join(parts)


def _counted(selector: SelectorNode, seconds: float, function: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers of the series of a selector, now and earlier, and of those with enough samples in its range.

    They are enough if the function returns something. A range that had none because the server was down is compared
    with what an instant selector found then. A long range has old samples of all series that an instant selector finds.
    """
    earlier_ones = f"count({selector_text(selector, seconds)})"
    yield f"count({selector_text(selector)})", earlier_ones
    found = _RANGE.match(selector.timing)
    if found is None or float(found[1]) >= _LONG_RANGE_SECONDS:
        return
    now, earlier = (selector_text(selector, ago, float(found[1])) for ago in (0.0, seconds))
    yield f"count({function}({now}))", f"count({function}({earlier})) or {earlier_ones}"


def whole_value(found: Sequence[Sample]) -> float | None:
    """Return the value of the query if there were series, and no selector has fewer now; `found` is the answer.

    Otherwise, or if there is no single value, return None.
    """
    values = [sample.value for sample in found if _VALUE in sample.labels]
    numbers = {(label, part): sample.value for sample in found for label, part in sample.labels.items()}
    earlier = {part: number for (label, part), number in numbers.items() if label == _EARLIER}
    is_whole = bool(earlier) and all(numbers.get((_NOW, part), 0.0) >= number for part, number in earlier.items())
    return values[0] if is_whole and len(values) == 1 and math.isfinite(values[0]) else None


def _labelled(count: str, label: str, number: int) -> str:
    return f'label_replace({count}, "{label}", "{number}", "", "")'
