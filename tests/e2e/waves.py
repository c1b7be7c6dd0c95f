"""A load that a test lets rise and fall, and recommenders that predict it."""

from __future__ import annotations

import json
import math
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from demo.machine.files import replace_file
from tests.e2e.recommenders import rights, rule, service_account
from tests.recommender.configuration.files import entry, whole
from tests.support.recommenders import Recommender, started

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.e2e.recommenders import Workload


class Wave:
    """A load over time. Thread-safe: an exporter asks while a test changes it."""

    def __init__(self, level: float) -> None:
        self._lock = threading.Lock()
        self._pieces = [(0.0, level, 0.0, level)]
        """Since when (seconds since the Unix epoch), the load then, its growth in a second, and its crest."""

    def __call__(self) -> float:
        return self.at(time.time())

    def at(self, moment: float) -> float:
        """Return the load of a moment, in seconds since the Unix epoch."""
        with self._lock:
            begin, level, per_second, crest = max(piece for piece in self._pieces if piece[0] <= moment)
        return min(crest, level + per_second * (moment - begin))

    def stand(self, level: float) -> float:
        """Let the load be this from now on, and return when that is."""
        return self.rise(0.0, level, start=level)

    def rise(self, per_second: float, crest: float, *, start: float | None = None) -> float:
        """Let the load rise from what it is to a crest, where it stays, and return when that begins."""
        now = time.time()
        level = self.at(now) if start is None else start
        with self._lock:
            self._pieces.append((now, level, per_second, crest))
        return now


@dataclass(slots=True)
class Predicting:
    """A place for recommenders that predict, with the rights that their configuration needs."""

    cluster: Cluster
    namespace: str
    folder: Path
    prometheus_url: str
    stack: ExitStack = field(default_factory=ExitStack)

    def configure(self, *entries: str) -> None:
        """Write the configuration, which a running recommender reads anew."""
        top = (
            f"pollInterval: 1s\nstate: {self.folder}/state\nprometheus: {{url: {self.prometheus_url}}}\n"
            f"leaderElection: {{enabled: false, namespace: {self.namespace}}}\n"
        )
        replace_file(self.folder / "recommender.yaml", whole(*entries, top=top))

    def export(self, pod_metrics: PodMetrics, metric: str, load: Callable[[], float], **labels: str) -> None:
        """Export a series of the namespace until the test ends."""
        pod_metrics.set(metric, load, namespace=self.namespace, **labels)
        self.stack.callback(pod_metrics.set, metric, None, namespace=self.namespace, **labels)

    def start(self, here: Sequence[Document], everywhere: Sequence[Document] = ()) -> Recommender:
        """Start a recommender with rules for its namespace and for all."""
        nodes = rule([""], ["nodes"], "list watch")
        given = service_account(
            self.cluster, self.namespace, "predictor", self.folder, here=here, everywhere=[nodes, *everywhere]
        )
        kubeconfig = self.stack.enter_context(given)
        command = ("run", f"--config={self.folder}/recommender.yaml", f"--kubeconfig={kubeconfig}")
        found = started(self.folder / "recommender.log", *command)
        self.stack.enter_context(found.process)
        return found


def predictive(name: str, settings: dict[str, Any], *lines: str) -> str:
    """Return an entry of the configuration; what is not set is the least that `run` needs."""
    least = {"horizon": "1s", "history": "10m", "headroom": "0%", "model": "linear"}
    return entry(name, *lines, kind=f"predictive: {json.dumps(least | settings)}")


def needed(load: float, per_replica: float) -> int:
    """Return how many replicas carry a load."""
    return math.ceil(load / per_replica - 1e-9)


def rights_to_scale(name: str, *targets: Workload) -> list[Document]:
    """Return the rules for one recommendation that scales Deployments of its namespace."""
    return rights([name], [target.name for target in targets])
