"""Containers as cAdvisor and kube-state-metrics describe them, backfilled as samples for a real Prometheus."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

END = 1_767_225_600
"""2026-01-01T00:00:00Z."""
STEP = 300
HOUR = 3600
DAY = 86_400
MIB = 2**20


@dataclass(frozen=True, slots=True)
class SizedPod:
    """A pod with one container; `cores` and `memory` are functions of the time before the end."""

    namespace: str
    name: str
    owner: tuple[str, str]
    cores: Callable[[int], float]
    memory: Callable[[int], float]
    container: str = "app"
    requests: dict[str, float] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    seconds: int = 4 * DAY
    """How long the pod has existed."""
    labels: dict[str, str] = field(default_factory=dict)
    """Further labels of all its series, such as `cluster`."""
    resets_at: int | None = None
    """Seconds before the end at which its CPU counter was reset."""
    killed_at: int | None = None
    """Seconds before the end at which it was killed because it was out of memory."""

    @property
    def identity(self) -> dict[str, str]:
        return {"namespace": self.namespace, "pod": self.name, "container": self.container} | self.labels


class Exposition:
    """Samples by metric, as OpenMetrics text."""

    def __init__(self, end: int = END) -> None:
        self._end = end
        self._lines: dict[str, list[str]] = defaultdict(list)

    def add(self, metric: str, labels: dict[str, str], samples: Iterable[tuple[int, float]]) -> None:
        shown = ",".join(f'{name}="{value}"' for name, value in labels.items())
        self._lines[metric] += (f"{metric}{{{shown}}} {value:.9g} {at}" for at, value in samples)

    def text(self) -> str:
        lines = [line for metric, those in self._lines.items() for line in (f"# TYPE {metric} unknown", *those)]
        return "\n".join([*lines, "# EOF", ""])

    def add_pod(self, pod: SizedPod, *, jobs: Iterable[str] = ("kubelet",)) -> None:
        """Add all series of a pod."""
        ages = range(pod.seconds, -1, -STEP)
        for job in jobs:
            labels = pod.identity | {"job": job}
            counter, samples = 0.0, []
            for age in ages:
                counter = 0.0 if age == pod.resets_at else counter + STEP * pod.cores(age)
                samples.append((self._end - age, counter))
            self.add("container_cpu_usage_seconds_total", labels | {"cpu": "total"}, samples)
            self.add("container_memory_working_set_bytes", labels, ((self._end - age, pod.memory(age)) for age in ages))
        known = self._known_moments(pod.seconds)
        name = {"namespace": pod.namespace, "pod": pod.name} | pod.labels
        kind, owner = pod.owner
        self.add_object("kube_pod_owner", name | {"owner_kind": kind, "owner_name": owner}, known)
        for metric, amounts in (("requests", pod.requests), ("limits", pod.limits)):
            for resource, amount in amounts.items():
                labels = pod.identity | {"resource": resource}
                self.add(f"kube_pod_container_resource_{metric}", labels, ((at, amount) for at in known))
        if pod.killed_at is not None:
            after = [at for at in known if at >= self._end - pod.killed_at]
            before = [at for at in known if at < self._end - pod.killed_at]
            reason = pod.identity | {"reason": "OOMKilled"}
            self.add_object("kube_pod_container_status_last_terminated_reason", reason, after)
            restarts = [(at, 0.0) for at in before] + [(at, 1.0) for at in after]
            self.add("kube_pod_container_status_restarts_total", pod.identity, restarts)

    def add_object(self, metric: str, labels: dict[str, str], moments: Iterable[int] = ()) -> None:
        """Add a series of kube-state-metrics, whose value is 1; without moments, its only sample is at the end."""
        self.add(metric, labels, ((at, 1.0) for at in tuple(moments) or (self._end,)))

    def add_replica_set(self, namespace: str, name: str, deployment: str) -> None:
        labels = {"namespace": namespace, "replicaset": name, "owner_kind": "Deployment", "owner_name": deployment}
        self.add_object("kube_replicaset_owner", labels, self._known_moments(4 * DAY))

    def _known_moments(self, seconds: int) -> list[int]:
        """Return when an object of this age was exported: often enough in the last hour for any query to find it."""
        ages = (*range(seconds, HOUR, -1800), *range(min(HOUR, seconds), -1, -STEP))
        return [self._end - age for age in ages]
