"""PromQL expressions for the load of nodes: one query per resource returns values and the facts to judge them by.

**Parts.** A query is a union of parts, which differ by the label `tidewatch_part`. Each part is aggregated by the
labels that can name a node (`IDENTITY_LABELS`) and by those that say who scraped it (`SOURCE_LABELS`), so its size does
not depend on the number of CPUs, devices or replicas, and the series of two exporters are never merged.

**CPU** is `1 - idle / (idle + busy)` from the counters of `node_cpu_seconds_total`, where idle comprises the modes
idle, iowait and steal. The exporter reads all counters at the same instant, so a scrape that is late cancels out; the
textbook form, `1 - rate(idle)`, is wrong by 7 percentage points on an idle node if one of two scrapes is a second
late.

**Rates** come from the last two scrapes (`irate`), so that each scrape interval counts once and nothing is smoothed
twice; `docs/node-windows.md` has the errors of this and of other estimators. Where scrapes are less than half a step
apart, `rate` over more than a step is used, which skips no scrape.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapter.foundation.promql.quoting import go_quoted, label_in_query
from adapter.nodes.exporters.claims import SOURCE_LABELS
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.queries.label_bounds import bound_label_lengths

PART_LABEL: Final = "tidewatch_part"
IDENTITY_LABELS: Final = ("instance", "node", "nodename", "kubernetes_node", "Hostname")
"""Labels that can name a node; labels that a series lacks do no harm."""

RATIO, IDLE, BUSY, ADVANCE, NEWEST, RESETS = "ratio", "idle", "busy", "advance", "newest", "resets"
"""The parts, in this order: the value; CPU seconds per second and CPU in idle modes; the same in all other modes; the
recorded sum of both; Unix seconds of the newest scraped sample; the number of counter resets, if there were any."""
CPUS: Final = "cpus"
"""The part for the number of CPUs that have a rate."""

STEP_SECONDS: Final = 15
"""Seconds between requested steps."""
_UNKNOWN_INTERVAL_WINDOW_SECONDS = 300
_SHORTEST_WINDOW_SECONDS = 20
_LONGEST_WINDOW_SECONDS = 600
_SCRAPES_IN_WINDOW = 4
"""A rate needs two scrapes; two more may fail."""

BASES: Final = {
    LoadResource.CPU: "node_cpu_seconds_total",
    LoadResource.MEMORY: "node_memory_MemAvailable_bytes",
    LoadResource.NETWORK: "node_network_speed_bytes",
    LoadResource.DISK: "node_disk_io_time_seconds_total",
    LoadResource.GPU: "DCGM_FI_DEV_GPU_UTIL",
}
"""The metric that has most of the series that a built-in expression reads."""
RULES: Final = {resource: f"tidewatch:node_{resource.value}_utilization:ratio" for resource in LoadResource}
"""Our recording rules (`rules/recording/`)."""
ACCOUNTED_RULE: Final = "tidewatch:node_cpu_accounted:ratio"
"""Our recording rule for the sum of a CPU's modes, which reveals a node whose counters do not advance."""

BY: Final = f"by ({', '.join((*IDENTITY_LABELS, *SOURCE_LABELS))})"
_BY_CPU = f"by ({', '.join((*IDENTITY_LABELS, *SOURCE_LABELS, 'cpu'))})"
BY_SOURCE: Final = f"by ({', '.join(SOURCE_LABELS)})"
# The DCGM exporter labels a GPU with the namespace of the pod that uses it.
_BY_JOB = f"by ({', '.join((*IDENTITY_LABELS, 'job'))})"
_IDLE_MODES = "idle|iowait|steal"
_VIRTUAL_INTERFACES = (
    "lo|veth.*|cali.*|cni.*|flannel.*|cilium.*|lxc.*|docker.*|br-.*|virbr.*|tunl.*|tun.*|tap.*|wg.*|vxlan.*|geneve.*"
    "|kube-.*|nodelocaldns|dummy.*|ovs-.*|gre.*|sit.*|ip6tnl.*"
)
_VIRTUAL_DISKS = "loop.*|ram.*|zram.*|sr.*|fd.*|dm-.*|md.*"


@dataclass(frozen=True, slots=True)
class RateFunction:
    """The function that turns counters into rates, and its range."""

    name: str
    window_seconds: int

    def of(self, selector: str) -> str:
        """Return the expression for the rate of a selector's series."""
        return f"{self.name}({selector}[{self.window_seconds}s])"


@dataclass(frozen=True, slots=True)
class ResourceQuery:
    """The query for one resource."""

    expression: str
    is_overridden: bool = False
    """Whether the values come from `queries:`, so that nothing is known about counters."""


def rate_function(scrape_seconds: float) -> RateFunction:
    """Return the best function for the nodes' longest scrape interval, which is NaN if it is not known."""
    if not math.isfinite(scrape_seconds) or scrape_seconds <= 0:
        return RateFunction("irate", _UNKNOWN_INTERVAL_WINDOW_SECONDS)
    window = math.ceil(_SCRAPES_IN_WINDOW * scrape_seconds)
    if scrape_seconds < STEP_SECONDS / 2:
        return RateFunction("rate", max(window, _SHORTEST_WINDOW_SECONDS))
    return RateFunction("irate", min(window, _LONGEST_WINDOW_SECONDS))


def resource_query(
    resource: LoadResource,
    *,
    rate: RateFunction,
    matchers: Sequence[str],
    override: str | None = None,
    recorded: bool = False,
) -> ResourceQuery:
    """Return the query for a resource; `recorded` says whether our recording rules cover all nodes."""
    if override is not None:
        # The line breaks keep a comment at the end of the expression from swallowing what follows.
        parts = {RATIO: f"\n{override}\n", NEWEST: f"timestamp(\n{override}\n)"}
        return ResourceQuery(union(parts), is_overridden=True)
    matchers = with_bounds(matchers)
    values = _recorded_expressions(resource, matchers) if recorded else value_parts(resource, rate, matchers)
    if resource is LoadResource.CPU and not recorded:
        values |= _cpu_count(rate, matchers)
    return ResourceQuery(union(values | _freshness_parts(resource, rate, matchers)))


def value_parts(resource: LoadResource, rate: RateFunction, matchers: Sequence[str]) -> dict[str, str]:
    """Return the built-in expressions by part."""
    return _VALUES[resource](rate, matchers)


def union(parts: Mapping[str, str]) -> str:
    """Return one expression whose samples carry the name of their part in `PART_LABEL`."""
    return "\nor ".join(f'label_replace({part}, "{PART_LABEL}", "{name}", "", "")' for name, part in parts.items())


def unions(parts: Mapping[str, str], most: int) -> tuple[str, ...]:
    """Return the union of the parts as at most `most` expressions, each about as long as the others."""
    longest = sum(map(len, parts.values())) / most
    expressions: list[dict[str, str]] = []
    length = math.inf
    for name, part in parts.items():
        if length >= longest:
            expressions.append({})
            length = 0
        expressions[-1][name] = part
        length += len(part)
    return tuple(map(union, expressions))


def matchers_of(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the matchers that select these labels, in PromQL."""
    return tuple(f"{label_in_query(label)}={go_quoted(value)}" for label, value in sorted(labels.items()))


def with_bounds(matchers: Sequence[str]) -> tuple[str, ...]:
    """Return the matchers together with those that bound each label that the built-in expressions return."""
    return (*matchers, *bound_label_lengths((*IDENTITY_LABELS, *SOURCE_LABELS)))


def selector(metric: str, matchers: Sequence[str], *own: str) -> str:
    """Return a PromQL selector with the metric's `own` matchers and the common `matchers`; `metric` may be empty."""
    inside = ", ".join((*own, *matchers))
    return f"{metric}{{{inside}}}" if inside else metric


def by_clause_of(resource: LoadResource) -> str:
    """Return the clause that keeps exporters apart by their labels."""
    return _BY_JOB if resource is LoadResource.GPU else BY


def by_source(resource: LoadResource) -> str:
    """Return the clause that keeps the sources apart."""
    return "by (job)" if resource is LoadResource.GPU else BY_SOURCE


def base_series(resource: LoadResource, matchers: Sequence[str]) -> str:
    """Return the selector for most of the series that a built-in expression reads."""
    return selector(BASES[resource], matchers)


def _cpu(rate: RateFunction, matchers: Sequence[str]) -> dict[str, str]:
    idle = selector("node_cpu_seconds_total", matchers, f'mode=~"{_IDLE_MODES}"')
    busy = selector("node_cpu_seconds_total", matchers, f'mode!~"{_IDLE_MODES}"')
    return {
        IDLE: f"avg {BY} (sum without (mode) ({rate.of(idle)}))",
        BUSY: f"avg {BY} (sum without (mode) ({rate.of(busy)}))",
    }


def _cpu_count(rate: RateFunction, matchers: Sequence[str]) -> dict[str, str]:
    # A Prometheus pair has the series of each CPU twice, and stores may lose those of one of them.
    idle = selector("node_cpu_seconds_total", matchers, 'mode="idle"')
    return {CPUS: f"count {BY} (group {_BY_CPU} ({rate.of(idle)}))"}


def _memory(_rate: RateFunction, matchers: Sequence[str]) -> dict[str, str]:
    # Both come from one target, so they have the same labels: duplicates are never matched with each other.
    available, total = (selector(f"node_memory_{name}_bytes", matchers) for name in ("MemAvailable", "MemTotal"))
    return {RATIO: f"avg {BY} (1 - {available} / ({total} > 0))"}


def _network(rate: RateFunction, matchers: Sequence[str]) -> dict[str, str]:
    device = f'device!~"{_VIRTUAL_INTERFACES}"'
    speed = selector("node_network_speed_bytes", matchers, device)
    # Aggregated before the union adds its label: an exporter may have a label of that name, and two of its series would
    # become equal, which fails the query for all nodes.
    both = union(
        {
            way: f"max {BY} ({rate.of(selector(f'node_network_{way}_bytes_total', matchers, device))} / ({speed} > 0))"
            for way in ("receive", "transmit")
        }
    )
    return {RATIO: f"max {BY} ({both})"}


def _disk(rate: RateFunction, matchers: Sequence[str]) -> dict[str, str]:
    busy = selector("node_disk_io_time_seconds_total", matchers, f'device!~"{_VIRTUAL_DISKS}"')
    return {RATIO: f"max {BY} ({rate.of(busy)})"}


def _gpu(_rate: RateFunction, matchers: Sequence[str]) -> dict[str, str]:
    return {RATIO: f"avg {_BY_JOB} ({selector('DCGM_FI_DEV_GPU_UTIL', matchers)}) / 100"}


def _recorded_expressions(resource: LoadResource, matchers: Sequence[str]) -> dict[str, str]:
    parts = {RATIO: f"avg {by_clause_of(resource)} ({selector(RULES[resource], matchers)})"}
    if resource is LoadResource.CPU:
        parts[ADVANCE] = f"avg {BY} ({selector(ACCOUNTED_RULE, matchers)})"
    return parts


def _freshness_parts(resource: LoadResource, rate: RateFunction, matchers: Sequence[str]) -> dict[str, str]:
    """Return the parts that show how fresh the samples are, and whether counters were reset."""
    own = ('mode="idle"',) if resource is LoadResource.CPU else ()
    scraped = selector(BASES[resource], matchers, *own)
    parts = {NEWEST: f"max {by_clause_of(resource)} (timestamp({scraped}))"}
    if resource is LoadResource.CPU:
        parts[RESETS] = f"max {BY} (resets({scraped}[{rate.window_seconds}s])) > 0"
    return parts


_VALUES = {
    LoadResource.CPU: _cpu,
    LoadResource.MEMORY: _memory,
    LoadResource.NETWORK: _network,
    LoadResource.DISK: _disk,
    LoadResource.GPU: _gpu,
}
