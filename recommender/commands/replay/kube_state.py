"""The past of a cluster from kube-state-metrics' series, queried in slices of hours so that memory stays small."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from adapter.foundation.objects.integers import INT64_MAX
from adapter.foundation.sources.prometheus.answers.annotations import warnings_of_stores
from adapter.foundation.sources.prometheus.answers.ranges import RangeLimits, RangeSeries
from adapter.foundation.sources.prometheus.errors import refuse_partial
from adapter.foundation.sources.prometheus.queries.clusters import NODE_CLUSTER_LABELS
from adapter.foundation.time.pace import UNPACED
from recommender.recording.recording import RecordingError, RecordingGap
from recommender.running.usage.prometheus_vectors import QUERY_SECONDS, Element, in_turn, vector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient

SLICE_STEPS: Final = 72
"""Steps of one range query: six hours of the default step."""
_LIMITS: Final = RangeLimits(max_bytes=512 * 2**20, max_series=500_000, max_samples=40_000_000)
_HONOURED: Final = 'exported_namespace=""'
"""Selects series whose `namespace` and `pod` are those of the observed pod, and not of kube-state-metrics' own pod."""
_POD: Final = ("namespace", "pod", "uid")
_INFO: Final = (*_POD, "node", "created_by_kind", "created_by_name")
_GAP_STEPS: Final = 2
"""If two samples are more steps apart than this, there is a gap; Prometheus itself bridges five minutes."""

K = TypeVar("K")
PodId: TypeAlias = tuple[str, str, str]
"""The namespace, the name and the UID of a pod."""


@dataclass(frozen=True, slots=True)
class PastWindow:
    """The period that is queried."""

    start: float
    end: float
    step_seconds: int

    def slices(self) -> list[tuple[float, float]]:
        """Return the first and the last step of each slice."""
        length = SLICE_STEPS * self.step_seconds
        steps = range(int(self.start), int(self.end) + 1, length)
        return [(float(begin), min(self.end, float(begin + length - self.step_seconds))) for begin in steps]


@dataclass(slots=True)
class SeenSpan:
    """The first and the last time at which something existed."""

    first: float
    last: float


@dataclass(slots=True)
class KubeState:
    """The facts in the series, by object. All times are Unix seconds."""

    window: PastWindow
    pods: dict[PodId, SeenSpan] = field(default_factory=dict)
    """The span in which each pod existed and had not ended."""
    bound: dict[PodId, tuple[str, float]] = field(default_factory=dict)
    """The node of each pod, and when it was first seen there."""
    owners: dict[PodId, tuple[str, str]] = field(default_factory=dict)
    """The kind and the name of each pod's owner."""
    created: dict[PodId, float] = field(default_factory=dict)
    scheduled: dict[PodId, float] = field(default_factory=dict)
    requests: dict[PodId, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    nodes: dict[str, SeenSpan] = field(default_factory=dict)
    node_created: dict[str, float] = field(default_factory=dict)
    node_labels: dict[str, dict[str, str]] = field(default_factory=dict)
    """The labels of each node, under the names that kube-state-metrics gives them, such as `label_pool`."""
    allocatable: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    taints: dict[str, set[tuple[str, str, str]]] = field(default_factory=lambda: defaultdict(set))
    gaps: tuple[RecordingGap, ...] = ()


def read_kube_state(client: PrometheusClient, window: PastWindow, show: Callable[[float, str], None]) -> KubeState:
    """Return the facts in the series. Raises PrometheusError, and RecordingError if series are missing."""
    _refuse_several_clusters(client, window.end)
    found, steps = KubeState(window), set[float]()
    slices = window.slices()
    for place, part in enumerate(slices):
        show(place / len(slices) / 4, f"querying Prometheus, part {place + 1} of {len(slices)}")
        _read_slice(_Slice(client, *part, window.step_seconds), found, steps)
    if not found.nodes:
        raise RecordingError(_missing_series_message("kube_node_info"))
    if not found.pods:
        raise RecordingError(_missing_series_message("kube_pod_status_phase"))
    if not found.requests:
        raise RecordingError(_missing_series_message("kube_pod_container_resource_requests"))
    if not found.allocatable:
        raise RecordingError(_missing_series_message("kube_node_status_allocatable"))
    found.gaps = tuple(_gaps(window, steps))
    return found


def _missing_series_message(metric: str) -> str:
    return (
        f"Prometheus has no series {metric} in this time: a replay needs those of kube-state-metrics. Check that it is "
        "scraped, that --last reaches no further back than Prometheus keeps series, and that prometheus.matchers "
        "select it; or let `run` record (`record: 30d`), and replay that with --recording"
    )


def _refuse_several_clusters(client: PrometheusClient, end: float) -> None:
    query = f"group by ({', '.join(NODE_CLUSTER_LABELS)}) (kube_node_info)"
    found = vector(client, query, end, NODE_CLUSTER_LABELS)
    for place, label in enumerate(NODE_CLUSTER_LABELS):
        values = sorted({each.labels[place] for each in found})
        if len(values) > 1:
            raise RecordingError(
                f"kube_node_info has series of several clusters ({label}: {', '.join(values[:5])}): choose one in the "
                f"configuration, such as `prometheus: {{matchers: '{label}=\"{values[-1]}\"'}}`"
            )


@dataclass(frozen=True, slots=True)
class _Slice:
    """A slice of the period, and the client with which it is queried."""

    client: PrometheusClient
    start: float
    end: float
    step_seconds: int

    @property
    def seconds(self) -> int:
        """Return the length of the slice, including one step before its start."""
        return int(self.end - self.start) + self.step_seconds

    def presence(self, query: str) -> tuple[RangeSeries, ...]:
        """Return the steps at which the series of a query exist. Raises PrometheusError."""
        answer = self.client.range(
            query,
            start=self.start,
            end=self.end,
            step_seconds=self.step_seconds,
            timeout_seconds=QUERY_SECONDS,
            limits=_LIMITS,
        )
        refuse_partial(query, warnings_of_stores(answer.warnings))
        return tuple(series for series in answer.series if series.timestamps)

    def largest(self, metric: str, labels: tuple[str, ...], where: str = "") -> list[Element]:
        """Return the largest value of a metric in the slice, by labels."""
        selected = f"max_over_time({metric}{{{where}}}[{self.seconds}s])"
        return _possible(vector(self.client, f"max by ({', '.join(labels)}) ({selected})", self.end, labels))

    def requests(self) -> list[Element]:
        """Return the sum of the container requests of each pod, by pod and resource.

        Series of a container that differ only in their `node` label count once.
        """
        selected = f"max_over_time(kube_pod_container_resource_requests{{{_HONOURED}}}[{self.seconds}s])"
        labels = (*_POD, "resource")
        by_container = f"max by ({', '.join(labels)}, container) ({selected})"
        return _possible(vector(self.client, f"sum by ({', '.join(labels)}) ({by_container})", self.end, labels))


def _possible(found: Iterable[Element]) -> list[Element]:
    """Return the samples whose values can be amounts or times, which are never negative and fit into 64 bits."""
    return [each for each in found if 0 <= each.value <= INT64_MAX]


def _read_slice(part: _Slice, found: KubeState, steps: set[float]) -> None:
    phases = f'kube_pod_status_phase{{phase=~"Pending|Running|Unknown",{_HONOURED}}} == 1'
    alive, info, nodes = in_turn(
        part.presence,
        (
            f"group by ({', '.join(_POD)}) ({phases})",
            f"group by ({', '.join(_INFO)}) (kube_pod_info{{{_HONOURED}}})",
            "group by (node) (kube_node_info)",
        ),
    )
    for series in alive:
        _see(found.pods, _pod_id(series.labels), series)
    for series in info:
        _note_info(found, series)
    for series in nodes:
        steps.update(series.timestamps)
        _see(found.nodes, series.labels.get("node", ""), series)
    for each in part.requests():
        namespace, pod, uid, resource = each.labels
        found.requests[namespace, pod, uid][resource] = each.value
    for metric, times in (("kube_pod_created", found.created), ("kube_pod_status_scheduled_time", found.scheduled)):
        for each in part.largest(metric, _POD, _HONOURED):
            namespace, pod, uid = each.labels
            times[namespace, pod, uid] = each.value
    _read_nodes(part, found)


def _read_nodes(part: _Slice, found: KubeState) -> None:
    for each in part.largest("kube_node_status_allocatable", ("node", "resource")):
        found.allocatable[each.labels[0]][each.labels[1]] = each.value
    for each in part.largest("kube_node_created", ("node",)):
        found.node_created[each.labels[0]] = each.value
    for each in part.largest("kube_node_spec_taint", ("node", "key", "value", "effect")):
        node, key, value, effect = each.labels
        found.taints[node].add((key, value, effect))
    query = f"last_over_time(kube_node_labels[{part.seconds}s])"
    answer = part.client.instant(query, timeout_seconds=QUERY_SECONDS, at=part.end)
    refuse_partial(query, warnings_of_stores(answer.warnings))
    for batch in answer.batches(UNPACED):
        for sample in batch:
            labels = {key: value for key, value in sample.labels.items() if key.startswith("label_")}
            found.node_labels.setdefault(sample.labels.get("node", ""), {}).update(labels)


def _pod_id(labels: dict[str, str]) -> PodId:
    return labels.get("namespace", ""), labels.get("pod", ""), labels.get("uid", "")


def _note_info(found: KubeState, series: RangeSeries) -> None:
    labels = series.labels
    pod, node, first = _pod_id(labels), labels.get("node", ""), series.timestamps[0]
    found.owners[pod] = labels.get("created_by_kind", ""), labels.get("created_by_name", "")
    if node and (pod not in found.bound or first < found.bound[pod][1]):
        found.bound[pod] = node, first


def _see(seen: dict[K, SeenSpan], key: K, series: RangeSeries) -> None:
    first, last = series.timestamps[0], series.timestamps[-1]
    known = seen.setdefault(key, SeenSpan(first, last))
    known.first, known.last = min(known.first, first), max(known.last, last)


def _gaps(window: PastWindow, steps: Iterable[float]) -> Iterable[RecordingGap]:
    """Yield the periods in which no node was seen, since kube-state-metrics was not scraped."""
    step = window.step_seconds
    for before, after in pairwise([window.start - step, *sorted(steps), window.end + step]):
        if after - before > _GAP_STEPS * step:
            yield RecordingGap(max(before, window.start), min(after, window.end))
