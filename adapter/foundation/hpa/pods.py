"""Pods as the HPA controller sees them: which of them count, and how.

CPU samples of a pod that is starting up say nothing about its load, so the controller considers readiness, but only for
CPU. For every other metric, a pod that is not pending either has a sample or lacks one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.hpa.spec import ResourceMetric, Settings

DEFAULT_WINDOW_SECONDS: Final = 60.0


class PodPhase(StrEnum):
    """Phases of a pod's life."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class PodState(StrEnum):
    """How a pod counts for one metric."""

    READY = "ready"
    UNREADY = "unready"
    MISSING = "missing"
    """The pod should have a sample but has none."""
    IGNORED = "ignored"
    """The pod is terminating or has terminated."""
    SUPERFLUOUS = "superfluous"
    """There is a sample, but no pod with this name."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """The condition Ready of a pod."""

    ready: bool | None
    """None if the condition's status is Unknown."""
    since: float
    """When it last changed."""


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod that the scale target's selector selects. Times are seconds on the same clock as `now` of `evaluate`."""

    name: str
    phase: PodPhase = PodPhase.RUNNING
    deleted: bool = False
    """Whether its deletion has been requested."""
    started_at: float | None = None
    readiness: Readiness | None = None
    requests_milli: Mapping[str, int] | None = None
    """The pod's request by resource, and the requests of its containers by `CONTAINER/RESOURCE`, in thousandths.

    A resource that is not requested is absent.
    """

    @property
    def serves(self) -> bool:
        """Whether it runs and is ready, so that it counts for Object and External targets of type Value."""
        return self.phase is PodPhase.RUNNING and self.readiness is not None and self.readiness.ready is True


@dataclass(frozen=True, slots=True)
class PodSample:
    """One pod's value of a metric."""

    milli: int
    timestamp: float = 0.0
    window_seconds: float = DEFAULT_WINDOW_SECONDS


@dataclass(frozen=True, slots=True)
class PodUsage:
    """One pod in the arithmetic of one metric."""

    state: PodState
    usage: int | None = None
    """Thousandths; None without a sample."""
    request: int | None = None
    """Thousandths; None if none is needed or set."""


def classify(pod: Pod, sample: PodSample | None, now: float, settings: Settings, *, cpu: bool) -> PodState:
    """Return how the pod counts for a metric, given its sample."""
    if pod.deleted or pod.phase is PodPhase.FAILED or (settings.ignores_succeeded and pod.phase is PodPhase.SUCCEEDED):
        return PodState.IGNORED
    if pod.phase is PodPhase.PENDING:
        return PodState.UNREADY
    if sample is None:
        return PodState.MISSING
    if cpu and _is_starting(pod, sample, now, settings):
        return PodState.UNREADY
    return PodState.READY


def usages(
    pods: Iterable[Pod],
    samples: Mapping[str, PodSample],
    now: float,
    settings: Settings,
    resource: ResourceMetric | None = None,
) -> list[PodUsage]:
    """Return the usage of every pod, and of every sample without a pod, for one metric.

    `resource` is the metric if it measures a resource; None for other metrics.
    """
    listed = {pod.name: pod for pod in pods}
    counted = []
    for pod in listed.values():
        sample = samples.get(pod.name)
        state = classify(pod, sample, now, settings, cpu=resource is not None and resource.resource == "cpu")
        request = (pod.requests_milli or {}).get(resource.name) if resource else None
        counted.append(PodUsage(state, sample.milli if sample else None, request))
    left_over = (sample for name, sample in samples.items() if name not in listed)
    return counted + [PodUsage(PodState.SUPERFLUOUS, sample.milli) for sample in left_over]


def _is_starting(pod: Pod, sample: PodSample, now: float, settings: Settings) -> bool:
    """Return whether a CPU sample may stem from the pod's start."""
    if pod.readiness is None or pod.started_at is None:
        return True
    unready = pod.readiness.ready is False
    if pod.started_at + settings.cpu_initialization_seconds > now:
        return unready or sample.timestamp < pod.readiness.since + sample.window_seconds
    never_ready = pod.started_at + settings.initial_readiness_delay_seconds > pod.readiness.since
    return unready and never_ready
