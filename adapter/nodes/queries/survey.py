"""What is asked every few minutes: how many series there are, how often they are scraped, which rules are recorded."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.loads import LoadResource
from adapter.nodes.queries.expressions import ACCOUNTED_RULE, PART_LABEL, RULES, base_series, selector, union
from adapter.nodes.queries.intervals import COUNT_WINDOW_SECONDS, from_counts, longest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SURVEY_SECONDS: Final = 300.0
_SERIES, _EXPORTERS, _RULE, _ACCOUNTED = "series:", "exporters:", "rule:", "accounted"
_SCRAPES, _UNAME = "scrapes", "uname"
_READ_TIMES: Final = {LoadResource.CPU: 2, LoadResource.MEMORY: 2, LoadResource.NETWORK: 4}
"""How many series a query reads for each of its base series, rounded up; 2 for others."""
_ANSWERED_PER_EXPORTER = 4


@dataclass(frozen=True, slots=True)
class Survey:
    """What is known of the series; empty before the first survey."""

    series: Mapping[LoadResource, int] = field(default_factory=dict)
    """How many series a query reads; 0 where there are none."""
    exporters: Mapping[LoadResource, int] = field(default_factory=dict)
    recorded: frozenset[LoadResource] = frozenset()
    """Resources that our recording rules cover for all exporters."""
    scrape_seconds: Mapping[str, float] = field(default_factory=dict)
    """Scrape interval by `instance`."""
    longest_scrape_seconds: float = float("nan")
    unames: Mapping[str, str] = field(default_factory=dict)
    """Host name by `instance`, where exporters agree on one."""

    def answered(self, resource: LoadResource) -> int:
        """Return an upper bound of the series of an answer."""
        return _ANSWERED_PER_EXPORTER * max(1, self.exporters.get(resource, 1))


def survey_query(matchers: Mapping[str, str]) -> str:
    """Return the instant query of the survey."""
    parts: dict[str, str] = {}
    for resource in LoadResource:
        base = base_series(resource, matchers)
        parts[f"{_SERIES}{resource.value}"] = f"count({base})"
        one_of = selector("node_cpu_seconds_total", matchers, 'mode="idle"') if resource is LoadResource.CPU else base
        parts[f"{_EXPORTERS}{resource.value}"] = f"count(count by (instance) ({one_of}))"
        parts[f"{_RULE}{resource.value}"] = f"count(count by (instance) ({selector(RULES[resource], matchers)}))"
    parts[_ACCOUNTED] = f"count(count by (instance) ({selector(ACCOUNTED_RULE, matchers)}))"
    window = f"[{COUNT_WINDOW_SECONDS}s]"
    one_per_exporter = (
        selector("node_memory_MemTotal_bytes", matchers),
        selector("node_cpu_seconds_total", matchers, 'cpu="0"', 'mode="idle"'),
        selector("DCGM_FI_DEV_GPU_UTIL", matchers),
    )
    counts = " or ".join(f"max by (instance) (count_over_time({one}{window}))" for one in one_per_exporter)
    parts[_SCRAPES] = f"({counts})"
    parts[_UNAME] = f"count by (instance, nodename) ({selector('node_uname_info', matchers)})"
    return union(parts)


def survey_of(samples: Iterable[tuple[Mapping[str, str], float]]) -> Survey:
    """Return what the samples (labels, value) of the survey's answer say."""
    numbers: dict[str, int] = {}
    counts: dict[str, float] = {}
    unames: dict[str, set[str]] = defaultdict(set)
    for labels, value in samples:
        part, instance = labels.get(PART_LABEL, ""), labels.get("instance", "")
        if part == _SCRAPES:
            counts[instance] = value
        elif part == _UNAME:
            unames[instance].add(labels.get("nodename", ""))
        else:
            numbers[part] = int(value)
    exporters = {resource: numbers.get(f"{_EXPORTERS}{resource.value}", 0) for resource in LoadResource}
    intervals = from_counts(np.array(list(counts.values()), dtype=np.float64))
    return Survey(
        series={
            resource: numbers.get(f"{_SERIES}{resource.value}", 0) * _READ_TIMES.get(resource, 2)
            for resource in LoadResource
        },
        exporters=exporters,
        recorded=frozenset(resource for resource in LoadResource if _covers(resource, numbers, exporters[resource])),
        scrape_seconds=dict(zip(counts, map(float, intervals), strict=True)),
        longest_scrape_seconds=longest(intervals),
        unames={instance: next(iter(names)) for instance, names in unames.items() if len(names) == 1},
    )


def _covers(resource: LoadResource, numbers: Mapping[str, int], exporters: int) -> bool:
    """Return whether the rule has a series for each exporter: of a part of the nodes it would hide the others."""
    rules = [numbers.get(f"{_RULE}{resource.value}", 0)]
    if resource is LoadResource.CPU:
        rules.append(numbers.get(_ACCOUNTED, 0))
    return min(rules) >= max(1, exporters)
