"""Series of ordinary pods, which run nothing: one target exports the values that tests choose for all of them.

Values follow the pods that exist: a share of a load falls when pods are added, as behind a real load balancer. That
closes the loop of an autoscaler.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

import urllib3.exceptions

from demo.machine.exporter import Exporter, running_exporter
from tests.e2e.controlplane.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.controlplane.client import ApiClient

Values: TypeAlias = Callable[[Sequence[str]], Mapping[str, float]]
"""Given the names of the Ready pods, in order, returns the value of each that has one, which may be NaN."""

_INTERVAL_SECONDS: Final = 0.25


def shared(total: float) -> Values:
    """Spread a load evenly over all pods."""
    return lambda pods: {pod: total / len(pods) for pod in pods}


def each(value: float) -> Values:
    """Give every pod the same value, however many there are."""
    return lambda pods: dict.fromkeys(pods, value)


class Work:
    """Values of counters whose growth is a load that all pods share, as the CPU seconds of a busy Deployment are."""

    def __init__(self, per_second: float) -> None:
        self.per_second = per_second
        """The growth per second of all pods together; it may be changed at any time."""
        self._done: dict[str, float] = {}
        self._last = time.monotonic()

    def __call__(self, pods: Sequence[str]) -> Mapping[str, float]:
        now = time.monotonic()
        share = self.per_second * (now - self._last) / max(1, len(pods))
        self._last = now
        self._done = {pod: self._done.get(pod, 0.0) + share for pod in pods}
        return self._done


class _OfPods(NamedTuple):
    """A metric of some pods."""

    metric: str
    namespace: str
    selector: str
    labels: tuple[tuple[str, str], ...]

    def labels_of(self, pod: str) -> dict[str, str]:
        return {"namespace": self.namespace, "pod": pod} | dict(self.labels)


class PodMetrics:
    """The series that Prometheus scrapes. Thread-safe."""

    def __init__(self, client: ApiClient, exporter: Exporter) -> None:
        self._client = client
        self.exporter = exporter
        self._lock = threading.Lock()
        self._of_pods: dict[_OfPods, Values] = {}
        self._others: dict[tuple[str, tuple[tuple[str, str], ...]], float | Callable[[], float]] = {}
        self._ended = threading.Event()

    @classmethod
    @contextmanager
    def running(cls, client: ApiClient) -> Iterator[Self]:
        """Export the series until the block ends."""
        with running_exporter() as exporter:
            metrics = cls(client, exporter)
            thread = threading.Thread(target=metrics._follow, name="pod metrics", daemon=True)
            thread.start()
            try:
                yield metrics
            finally:
                metrics._ended.set()
                thread.join()

    def scrape_config(self) -> dict[str, Any]:
        """Return the entry of `scrape_configs` that scrapes this."""
        return self.exporter.scrape_config("pods")

    def of_pods(self, metric: str, namespace: str, selector: str, values: Values, **labels: str) -> None:
        """Export a metric of the Ready pods that the label selector chooses.

        Its labels are `namespace`, `pod` and the given ones.
        """
        with self._lock:
            self._of_pods[_OfPods(metric, namespace, selector, tuple(sorted(labels.items())))] = values

    def forget_pods(self, metric: str, namespace: str, selector: str, **labels: str) -> None:
        """Stop exporting a metric of pods."""
        with self._lock:
            self._of_pods.pop(_OfPods(metric, namespace, selector, tuple(sorted(labels.items()))), None)

    def set(self, metric: str, value: float | Callable[[], float] | None, **labels: str) -> None:
        """Export one series with this value, or with the function's result at each scrape; None ends it."""
        key = (metric, tuple(sorted(labels.items())))
        with self._lock:
            if value is None:
                self._others.pop(key, None)
            else:
                self._others[key] = value

    def _follow(self) -> None:
        while not self._ended.wait(_INTERVAL_SECONDS):
            try:
                self.exporter.publish(self._text())
            except (urllib3.exceptions.HTTPError, ApiError):
                # The API server is away: pods go on exporting what they did.
                continue

    def _text(self) -> str:
        with self._lock:
            of_pods, others = dict(self._of_pods), dict(self._others)
        lines = [
            _line(metric, dict(labels), value() if callable(value) else value)
            for (metric, labels), value in others.items()
        ]
        ready: dict[tuple[str, str], list[str]] = {}
        for of, values in of_pods.items():
            if (pods := ready.get((of.namespace, of.selector))) is None:
                pods = ready[of.namespace, of.selector] = self._ready_pods(of.namespace, of.selector)
            lines += [_line(of.metric, of.labels_of(pod), value) for pod, value in values(pods).items()]
        return "\n".join([*sorted(lines), ""])

    def _ready_pods(self, namespace: str, selector: str) -> list[str]:
        pods = self._client.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)
        return sorted(pod["metadata"]["name"] for pod in pods if _is_ready(pod))


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _line(metric: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{name}="{text}"' for name, text in labels.items())
    return f"{metric}{{{inside}}} {float(value)}"
