"""Lists the series that do not count because their labels are too long, with a repair. Pure."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from adapter.foundation.reports.counts import agreeing
from adapter.nodes.exporters.claims import SOURCE_LABELS, Source, source_of, source_text
from adapter.nodes.model.loads import LoadResource, UnmappedSeries
from adapter.nodes.queries.expressions import ACCOUNTED_RULE, BASES, IDENTITY_LABELS, RULES, selector
from adapter.nodes.queries.label_bounds import bound_label_lengths, longest_label, too_long
from adapter.nodes.queries.range_matrix import MOST_LABEL_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_METRICS: Final = {ACCOUNTED_RULE: LoadResource.CPU} | {
    metrics[resource]: resource for metrics in (BASES, RULES) for resource in LoadResource
}
"""The metrics by which nodes are measured."""


class LongLabel(NamedTuple):
    """A label that is too long."""

    source: Source
    """Who exports it; empty if it is one of the labels that say so."""
    label: str
    resource: LoadResource


def long_label_counts(matchers: Sequence[str]) -> dict[str, str]:
    """Return expressions that count the series with a long label, by label; the answers have no long label."""
    metrics = f'__name__=~"{"|".join(_METRICS)}"'
    counts = {
        label: f"count by (__name__) ({selector('', matchers, metrics, too_long(label))})" for label in SOURCE_LABELS
    }
    of_sources = f"count by ({', '.join(('__name__', *SOURCE_LABELS))})"
    short = (*matchers, *bound_label_lengths(SOURCE_LABELS))
    return counts | {
        label: f"{of_sources} ({selector('', short, metrics, too_long(label))})" for label in IDENTITY_LABELS
    }


def long_label_of(label: str, sample: Mapping[str, str]) -> LongLabel | None:
    """Return what a sample of a label's count says; None if it names no metric by which nodes are measured."""
    resource = _METRICS.get(sample.get("__name__", ""))
    return None if resource is None else LongLabel(source_of(sample), label, resource)


def long_label_series(found: Iterable[LongLabel]) -> tuple[UnmappedSeries, ...]:
    """Return one entry for each source with long labels, with the reason and the repair."""
    labels: dict[Source, set[str]] = defaultdict(set)
    resources: dict[Source, set[LoadResource]] = defaultdict(set)
    for one in found:
        labels[one.source].add(one.label)
        resources[one.source].add(one.resource)
    return tuple(
        UnmappedSeries(
            "",
            dict(source),
            tuple(resource for resource in LoadResource if resource in resources[source]),
            "Find out who exports them, and stop scraping that, or drop the labels.",
            f"{_who(source, labels[source])} series with labels that are too long for any node "
            f"({', '.join(_limit(label) for label in sorted(labels[source]))}): none of these is queried.",
        )
        for source in sorted(labels)
    )


def long_answer_series(left_out: Mapping[LoadResource, int]) -> tuple[UnmappedSeries, ...]:
    """Return one entry for each resource whose last answer had series that were left out; `left_out` is their number.

    That happens only to the answers of configured expressions.
    """
    return tuple(
        UnmappedSeries(
            "",
            {},
            (resource,),
            f"Let the expression for {resource} in `queries` aggregate by (instance), or select the right exporters.",
            f"{series} series in the answer for {resource} {agreeing(series, 'has', 'have')} more than "
            f"{MOST_LABEL_BYTES:,} bytes of labels.",
        )
        for resource, series in left_out.items()
        if series
    )


def _who(source: Source, labels: set[str]) -> str:
    return "There are" if not source and labels.intersection(SOURCE_LABELS) else f"{source_text(source)} exports"


def _limit(label: str) -> str:
    return f"{label}: more than {longest_label(label)} characters"
