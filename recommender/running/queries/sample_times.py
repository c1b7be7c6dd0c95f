"""Determines how old the samples behind a query's values are (pure).

Prometheus evaluates a query with samples that may be minutes old, and its answer states the time of the evaluation. A
second query is therefore sent for the same instant. For each selector of the query, it returns the time of the newest
sample, by the labels that name a target if there are several targets. A value is as old as the oldest of these times.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.promql.quoting import go_quoted, is_metric_name, label_in_query
from adapter.foundation.promql.reach import LOOK_BACK_SECONDS, longest_range, spelled_offsets, spelled_ranges
from adapter.foundation.promql.tree import (
    Binary,
    Call,
    Cardinality,
    Node,
    SelectorNode,
    Wrapper,
    all_nodes,
    operands_of,
)
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.sources.prometheus.answers.decoding import Sample

_NAME: Final = "__name__"
_PART: Final = "tidewatch_part"
"""Label that distinguishes the selectors, which may differ only in their names."""
_OFFSET: Final = re.compile(r" offset ([0-9.]+)")
_SEARCHES: Final = 30
"""The number of evaluations of a subquery that searches a range for the newest sample."""
_LEAST_STEP_SECONDS: Final = 5
_WITHOUT_SERIES: Final = frozenset({"absent", "absent_over_time", "info", "scalar", "vector"})
"""Functions that return a value although their argument has no series."""


@dataclass(frozen=True, slots=True)
class TimesQuery:
    """The queries that return the times of a query's samples."""

    text: str
    """The query; empty if the original query cannot be read, or reads no current samples."""
    search: str
    """The query for the newest samples within the ranges of the original query, which is sent if `text` finds nothing
    for a selector; empty if the original query has no ranges."""
    selectors: int
    """Number of selectors."""
    needed: int
    """The number of selectors without whose samples the query has no value."""
    range_seconds: float
    """How far back the ranges of the query look: its value may come from samples as old as that. Infinite if a range or
    an offset of an unreadable query is computed."""
    by: tuple[str, ...]
    is_readable: bool = True
    """Whether the times can be queried; otherwise only the ranges that are spelled out are known."""


def times_query(query: str, by: tuple[str, ...] = ()) -> TimesQuery:
    """Return the queries for the times of the samples of `query`; `by` has the labels that name a target."""
    try:
        tree = parse_query(query)
    except UnreadableQueryError:
        # As in a readable query, a longer offset is intended: the value is one of another time.
        oldest = spelled_ranges(query, LOOK_BACK_SECONDS) + spelled_offsets(query, LOOK_BACK_SECONDS)
        return TimesQuery("", "", 0, 0, oldest, by, is_readable=False)
    counted = current_selectors(tree)
    longest = longest_range(tree, LOOK_BACK_SECONDS)
    if any(selector.alternatives for selector in counted):
        return TimesQuery("", "", 0, 0, longest, by, is_readable=False)
    spelled = list(dict.fromkeys(map(selector_text, counted)))
    step = max(_LEAST_STEP_SECONDS, math.ceil(longest / _SEARCHES))
    return TimesQuery(
        _joined_times([f"timestamp({each})" for each in spelled], by),
        _joined_times([f"max_over_time(timestamp({each})[{math.ceil(longest)}s:{step}s])" for each in spelled], by)
        if longest
        else "",
        len(spelled),
        _needed_selectors(tree, len(spelled)),
        longest,
        by,
    )


def current_selectors(tree: Node) -> list[SelectorNode]:
    """Return the selectors of a query that read current samples."""
    selectors = list(_selectors(tree))
    now = [selector for selector in selectors if not _is_elsewhere(selector.timing)]
    # If nothing else is read, a short offset only waits for late samples.
    return now or [selector for selector in selectors if 0 < _delay_seconds(selector) <= LOOK_BACK_SECONDS]


def must_search(asked: TimesQuery, found: Iterable[Sample]) -> bool:
    """Return whether a selector has no sample among the times found, although its range may have one."""
    return bool(asked.search) and len({row.labels.get(_PART) for row in found}) < asked.selectors


def times_of(asked: TimesQuery, samples: Sequence[Sample], found: Iterable[Sample], at: float) -> list[float]:
    """Return the time of the data of each sample, in Unix seconds; `found` has the answers about times.

    A time that is not known is the earliest possible one: `at` minus the longest range, and for a query that is
    unreadable, at least minus the look-back of Prometheus. `range_seconds` must be finite. A value that comes from no
    series, such as `vector(0)`, has the time `at`. If samples are missing without which there is no value, another
    server has answered, one of several behind an address, for example: nothing is known of the age of the value.
    """
    if not asked.is_readable:
        return [at - max(LOOK_BACK_SECONDS, asked.range_seconds)] * len(samples)
    parts: dict[str, dict[tuple[str, ...], float]] = {}
    for row in found:
        group = _group(row.labels, asked.by)
        part = parts.setdefault(row.labels.get(_PART, ""), {})
        part[group] = max(row.value, part.get(group, -math.inf))
    if len(parts) < asked.needed:
        return [at - max(LOOK_BACK_SECONDS, asked.range_seconds)] * len(samples)
    return [min([at, *(_time(asked, part, sample.labels, at) for part in parts.values())]) for sample in samples]


def _time(asked: TimesQuery, part: Mapping[tuple[str, ...], float], labels: Mapping[str, str], at: float) -> float:
    own = part.get(_group(labels, asked.by))
    if own is not None:
        return own
    # If the series carry the labels themselves, a missing target has no sample; otherwise, it is unknown which samples
    # are its own.
    has_labels = any(all(group) for group in part) and bool(asked.by)
    return at - asked.range_seconds if has_labels else max(part.values())


def _group(labels: Mapping[str, str], by: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(labels.get(label, "") for label in by)


def _selectors(node: Node) -> Iterator[SelectorNode]:
    """Yield the selectors below the node, except in subqueries that are intentionally evaluated at another time."""
    if isinstance(node, SelectorNode):
        yield node
        return
    if isinstance(node, Wrapper) and _is_elsewhere(node.kind):
        return
    for part in operands_of(node):
        yield from _selectors(part)


def _needed_selectors(tree: Node, selectors: int) -> int:
    nodes = list(all_nodes(tree))
    if any(isinstance(node, Call) and (node.function in _WITHOUT_SERIES or not node.arguments) for node in nodes):
        return 0
    matchings = [node.matching for node in nodes if isinstance(node, Binary) and node.matching]
    has_alternatives = any(each.cardinality is Cardinality.MANY_TO_MANY or each.fill for each in matchings)
    return min(1, selectors) if has_alternatives else selectors


def _is_elsewhere(timing: str) -> bool:
    return "offset" in timing or "@" in timing


def _delay_seconds(selector: SelectorNode) -> float:
    """Return the offset of a selector; 0 if it has none, or if it is evaluated at a fixed time."""
    found = None if "@" in selector.timing else _OFFSET.search(selector.timing)
    return 0.0 if found is None else float(found[1])


def selector_text(selector: SelectorNode, seconds_earlier: float = 0.0, range_seconds: float = 0.0) -> str:
    """Return the PromQL of a selector of the samples that it reads, or of those that it read earlier.

    It selects the newest sample of each series, or with `range_seconds`, those of a range.
    """
    named = [each.value for each in selector.matchers if (each.label, each.operator) == (_NAME, "=")]
    bare = named[0] if named and is_metric_name(named[0]) else ""
    matchers = [
        f"{label_in_query(each.label)}{each.operator}{go_quoted(each.value)}"
        for each in selector.matchers
        if not bare or (each.label, each.operator, each.value) != (_NAME, "=", bare)
    ]
    delay_milliseconds = round(1000 * (_delay_seconds(selector) + seconds_earlier))
    offset = f" offset {delay_milliseconds}ms" if delay_milliseconds else ""
    span = f"[{round(1000 * range_seconds)}ms]" if range_seconds else ""
    return (f"{bare}{{{','.join(matchers)}}}" if matchers else bare) + span + offset


def _joined_times(times: Sequence[str], by: tuple[str, ...]) -> str:
    grouping = f" by ({', '.join(map(label_in_query, by))})" if by else ""
    parts = [
        f'label_replace(max{grouping} ({each}), "{_PART}", "{number}", "", "")' for number, each in enumerate(times)
    ]
    return " or ".join(parts)
