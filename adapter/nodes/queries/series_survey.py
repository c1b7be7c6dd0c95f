"""Surveys, every few minutes, how many series there are, how often they are scraped, and which rules are recorded."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np

from adapter.foundation.sources.prometheus.queries.clusters import CLUSTER_LABELS
from adapter.nodes.exporters.claims import SOURCE_LABELS, Past, Source, exporter_text, source_of
from adapter.nodes.exporters.excess_exporters import (
    NAMESPACE_LABELS,
    CrowdedOut,
    left_out,
    left_out_series,
    most_exporters,
)
from adapter.nodes.model.loads import LoadResource, UnmappedSeries
from adapter.nodes.queries.expressions import (
    ACCOUNTED_RULE,
    BY,
    BY_SOURCE,
    PART_LABEL,
    RULES,
    base_series,
    by_clause_of,
    by_source,
    matchers_of,
    selector,
    union,
)
from adapter.nodes.queries.label_bounds import bound_label_lengths
from adapter.nodes.queries.long_labels import LongLabel, long_label_counts, long_label_of, long_label_series
from adapter.nodes.queries.scrape_intervals import COUNT_WINDOW_SECONDS, from_counts, longest_interval

T = TypeVar("T")

SURVEY_SECONDS: Final = 300.0
_SERIES, _EXPORTERS, _SOURCES, _RULE, _ACCOUNTED = "series:", "exporters:", "sources:", "rule:", "accounted:"
_RECORDED: Final = "recorded:"
"""The exporters of which there are recorded series, whether or not they have any other series."""
_OF_NAMESPACES: Final = {label: f"{label}:" for label in NAMESPACE_LABELS}
_LONG: Final = "long:"
_PAST_NODES, _PAST_GPUS = "nodes:", "gpus:"
_PAST_SECONDS: Final = (0, 300, 900, 1800, 3000, 86_400, 604_800)
_SCRAPES, _UNAME, _MIXED = "scrapes", "uname", "mixed"
_READ_TIMES: Final = {LoadResource.CPU: 2, LoadResource.MEMORY: 2, LoadResource.NETWORK: 4}
"""How many series a query reads for each of its base series, rounded up; 2 for resources that are not listed."""
_ANSWERED_PER_EXPORTER = 4
MOST_SOURCES: Final = 1000
"""At most this many sources are counted, the largest ones. Anybody may export labels that distinguish sources, with any
values."""
_MOST_SOURCES_OF_INSTANCE = 20


@dataclass(frozen=True, slots=True)
class Survey:
    """Known properties of the series; empty before the first survey."""

    series: Mapping[LoadResource, int] = field(default_factory=dict)
    """How many series a query reads; 0 if there are none."""
    exporters: Mapping[LoadResource, int] = field(default_factory=dict)
    recorded: frozenset[LoadResource] = frozenset()
    """Resources that our recording rules cover for all exporters."""
    scrape_seconds: Mapping[str, float] = field(default_factory=dict)
    """Scrape interval by `exporter_text`, and by `instance` alone."""
    longest_scrape_seconds: float = float("nan")
    unames: Mapping[str, str] = field(default_factory=dict)
    """Host name by the keys of `scrape_seconds`, if exporters agree on one."""
    left_out: Mapping[LoadResource, CrowdedOut] = field(default_factory=dict)
    """Sources that no query may read; the counts in this survey exclude them."""
    long_labels: frozenset[LongLabel] = frozenset()
    """Labels that are too long; no query reads the series that have them."""
    mixed: frozenset[str] = frozenset()
    """Exporters by `exporter_text` that are of several clusters, so that a query would merge different machines."""

    def matchers(self, resource: LoadResource, labels: Mapping[str, str]) -> tuple[str, ...]:
        """Return the matchers of a resource's selectors, in PromQL; `labels` are the configured `matchers`."""
        crowd = self.left_out.get(resource)
        return (*matchers_of(labels), *(() if crowd is None else crowd.matchers))

    def unread(self) -> tuple[UnmappedSeries, ...]:
        """Return an entry for each source with series that no query reads, with the reason and the repair."""
        return (*left_out_series(self.left_out), *long_label_series(self.long_labels))

    def most_series(self, resource: LoadResource) -> int:
        """Return how many series an answer has at most, except after counters of most exporters were reset."""
        return _ANSWERED_PER_EXPORTER * max(1, self.exporters.get(resource, 1))


def survey_query(matchers: Sequence[str], *, with_past: bool = False) -> str:
    """Return the instant query of the survey; `with_past` also asks for the sources of earlier times."""
    return union(survey_parts(matchers, with_past=with_past))


def survey_parts(matchers: Sequence[str], *, with_past: bool = False) -> dict[str, str]:
    """Return the expressions of the survey, by part; each can be sent in a query of its own."""
    parts = {
        f"{_LONG}{label}": f"topk({MOST_SOURCES}, {count})" for label, count in long_label_counts(matchers).items()
    }
    # Only labels that the answer has are bounded: the others would cost time.
    matchers = (*matchers, *bound_label_lengths(SOURCE_LABELS))
    parts |= _past_parts(matchers) if with_past else {}
    for resource in LoadResource:
        base, by, source = base_series(resource, matchers), by_clause_of(resource), by_source(resource)
        parts[f"{_SERIES}{resource.value}"] = _largest(BY_SOURCE, base)
        # All modes of a CPU count: otherwise, somebody could export only a mode that is not examined.
        parts[f"{_EXPORTERS}{resource.value}"] = _largest(source, f"count {by} ({base})")
        targets = f"count {BY} ({base})"
        if resource is LoadResource.GPU:
            # Here too, the limit on crowds applies to each namespace: jobs are shared by all annotated pods.
            parts[f"{_SOURCES}{resource.value}"] = _largest(BY_SOURCE, targets)
        for label, part in _OF_NAMESPACES.items():
            parts[f"{part}{resource.value}"] = _largest(f"by ({label})", targets)
        one_of = selector("node_cpu_seconds_total", matchers, 'mode="idle"') if resource is LoadResource.CPU else base
        # Rules that drop the labels of who scraped a series cannot be distinguished from those of others.
        rules = {_RULE: RULES[resource]} | ({_ACCOUNTED: ACCOUNTED_RULE} if resource is LoadResource.CPU else {})
        for part, rule in rules.items():
            recorded = f"count {by} ({selector(rule, matchers)}) and count {by} ({one_of})"
            parts[f"{part}{resource.value}"] = _largest(source, recorded)
        both = " or ".join(selector(rule, matchers) for rule in rules.values())
        parts[f"{_RECORDED}{resource.value}"] = f"count (count {by} ({both}))"
    window = f"[{COUNT_WINDOW_SECONDS}s]"
    who = f"instance, {', '.join(SOURCE_LABELS)}"
    short = (*matchers, *bound_label_lengths(("instance",)))
    one_per_exporter = (
        (selector("node_memory_MemTotal_bytes", short), who),
        (selector("node_cpu_seconds_total", short, 'cpu="0"', 'mode="idle"'), who),
        (selector("DCGM_FI_DEV_GPU_UTIL", short), "instance, job"),
    )
    counts = " or ".join(f"max by ({labels}) (count_over_time({one}{window}))" for one, labels in one_per_exporter)
    sources = " or ".join(f"count by ({labels}) ({one})" for one, labels in one_per_exporter)
    parts[_SCRAPES] = f"({counts}) and {_with_few_sources(sources)}"
    clusters = ", ".join(CLUSTER_LABELS)
    mixed = " or ".join(
        f"count by ({labels}) (group by ({labels}, {clusters}) ({one})) > 1" for one, labels in one_per_exporter
    )
    parts[_MIXED] = f"({mixed}) and {_with_few_sources(sources)}"
    unames = f"count by (nodename, {who}) ({selector('node_uname_info', short, *bound_label_lengths(('nodename',)))})"
    # An exporter that reports many names counts as having none.
    parts[_UNAME] = f"{unames} and on ({who}) (count by ({who}) ({unames}) == 1) and {_with_few_sources(unames)}"
    return {part: f"({expression})" for part, expression in parts.items()}


def _largest(by: str, series: str) -> str:
    return f"topk({MOST_SOURCES}, count {by} ({series}))"


def _with_few_sources(series: str) -> str:
    """Return the right side of an `and` that leaves out instances with very many sources."""
    return f"on (instance) (count by (instance) ({series}) <= {_MOST_SOURCES_OF_INSTANCE})"


def _past_parts(matchers: Sequence[str]) -> dict[str, str]:
    families = {
        _PAST_NODES: (selector("node_cpu_seconds_total", matchers, 'cpu="0"', 'mode="idle"'), SOURCE_LABELS),
        _PAST_GPUS: (selector("DCGM_FI_DEV_GPU_UTIL", matchers), ("job",)),
    }
    offsets = {ago: f" offset {ago}s" if ago else "" for ago in _PAST_SECONDS}
    return {
        f"{family}{ago}": _largest(f"by ({', '.join(labels)})", f"{series}{offset}")
        for family, (series, labels) in families.items()
        for ago, offset in offsets.items()
    }


def _by_instance(found: Mapping[str, T]) -> dict[str, T]:
    """Return the values without those that equal the value of their `instance` alone, which are nearly all."""
    return {key: one for key, one in found.items() if "\0" not in key or one != found[key.partition("\0")[0]]}


def past_of(
    samples: Iterable[tuple[Mapping[str, str], float]], now: float
) -> Mapping[LoadResource, Mapping[Source, Past]]:
    """Return what the samples of the survey's answer say about earlier sources, by resource."""
    counts: dict[str, dict[Source, dict[int, float]]] = {_PAST_NODES: {}, _PAST_GPUS: {}}
    for labels, value in samples:
        family, colon, ago = labels.get(PART_LABEL, "").partition(":")
        if (found := counts.get(family + colon)) is not None:
            found.setdefault(source_of(labels), {})[int(ago)] = value
    nodes, gpus = (_pasts(counts[family], now) for family in (_PAST_NODES, _PAST_GPUS))
    return {resource: gpus if resource is LoadResource.GPU else nodes for resource in LoadResource}


def _pasts(counts: Mapping[Source, Mapping[int, float]], now: float) -> dict[Source, Past]:
    largest: dict[int, float] = defaultdict(float)
    for found in counts.values():
        for ago, value in found.items():
            largest[ago] = max(largest[ago], value)
    pasts = {}
    for source, found in counts.items():
        newest = min(found)
        exporters = found[newest]
        is_missed = newest > 0 and 2 * exporters >= largest[newest]
        pasts[source] = Past(now - max(found), now - newest, int(exporters), is_missed)
    return pasts


def survey_of(samples: Iterable[tuple[Mapping[str, str], float]], nodes: int | None = None) -> Survey:
    """Return the survey that an answer's samples (labels, value) show; `nodes` is the number of nodes, if known."""
    by_source: dict[str, dict[Source, int]] = {}
    counts: dict[str, float] = {}
    unames: dict[str, set[str]] = defaultdict(set)
    long: set[LongLabel | None] = set()
    mixed: set[str] = set()
    for labels, value in samples:
        part, instance = labels.get(PART_LABEL, ""), labels.get("instance", "")
        if part == _SCRAPES:
            # If labels do not say who scraped a series, the most frequent scrapes of the instance count.
            for key in {instance, exporter_text(labels)}:
                counts[key] = max(value, counts.get(key, 0.0))
        elif part == _UNAME:
            for key in {instance, exporter_text(labels)}:
                unames[key].add(labels.get("nodename", ""))
        elif part == _MIXED:
            mixed.add(exporter_text(labels))
        elif part.startswith(_LONG):
            long.add(long_label_of(part.removeprefix(_LONG), labels))
        elif not part.startswith((_PAST_NODES, _PAST_GPUS)):
            by_source.setdefault(part, {})[source_of(labels)] = int(value)
    most = most_exporters(nodes)
    crowds = {one: _crowd(one, by_source, most) for one in LoadResource}
    numbers = {
        f"{part}{one.value}": sum(
            count for source, count in by_source.get(f"{part}{one.value}", {}).items() if not crowds[one].covers(source)
        )
        for part in (_SERIES, _EXPORTERS, _SOURCES, _RULE, _ACCOUNTED)
        for one in LoadResource
    }
    exporters = {resource: numbers[f"{_EXPORTERS}{resource.value}"] for resource in LoadResource}
    if crowds[LoadResource.GPU].labels:
        exporters[LoadResource.GPU] = numbers[f"{_SOURCES}{LoadResource.GPU.value}"]
    counts = _by_instance(counts)
    intervals = from_counts(np.array(list(counts.values()), dtype=np.float64))
    return Survey(
        series={
            resource: numbers[f"{_SERIES}{resource.value}"] * _READ_TIMES.get(resource, 2) for resource in LoadResource
        },
        exporters=exporters,
        recorded=frozenset(
            one
            for one in LoadResource
            if _covers(one, numbers, exporters[one])
            and _is_out_of_rules(one, crowds[one])
            # Recorded series can be made up too, and a crowd of them has no exporters that would be counted.
            and sum(by_source.get(f"{_RECORDED}{one.value}", {}).values()) <= most
        ),
        scrape_seconds=dict(zip(counts, map(float, intervals), strict=True)),
        longest_scrape_seconds=longest_interval(intervals),
        unames={instance: next(iter(names)) for instance, names in _by_instance(unames).items() if len(names) == 1},
        left_out={resource: found for resource, found in crowds.items() if found.exporters},
        long_labels=frozenset(one for one in long if one is not None),
        mixed=frozenset(mixed),
    )


def _crowd(resource: LoadResource, by_source: Mapping[str, dict[Source, int]], most: int) -> CrowdedOut:
    """Return the sources of a resource that no query may read."""
    of_namespaces = [by_source.get(f"{part}{resource.value}", {}) for part in _OF_NAMESPACES.values()]
    part = _SOURCES if resource is LoadResource.GPU else _EXPORTERS
    return left_out(by_source.get(f"{part}{resource.value}", {}), dict(ChainMap(*of_namespaces)), most)


def _is_out_of_rules(resource: LoadResource, crowd: CrowdedOut) -> bool:
    """Return whether the rule's series can be selected without the crowd; those for GPUs have no namespace."""
    return resource is not LoadResource.GPU or all(label == "job" for label, _ in crowd.labels)


def _covers(resource: LoadResource, numbers: Mapping[str, int], exporters: int) -> bool:
    """Return whether the rule has a series for each exporter; a rule for only some nodes would hide the others."""
    rules = [numbers[f"{_RULE}{resource.value}"]]
    if resource is LoadResource.CPU:
        rules.append(numbers[f"{_ACCOUNTED}{resource.value}"])
    return min(rules) >= max(1, exporters)
