"""A load that a test lets rise and fall, and recommenders that predict it."""

from __future__ import annotations

import json
import math
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from demo.machine.files import replace_file
from recommender.configuration.reading import read_configuration
from recommender.configuration.rights import rights_of
from recommender.running.memory.store_protocol import memory_object_name
from tests.e2e.support.recommenders import RBAC, Workload, rule, service_account
from tests.recommender.configuration.files import entry, whole
from tests.support.recommenders import Recommender, started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from recommender.kinds.role_rules import RoleRule
    from tests.e2e.controlplane.audit import AuditEvent
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.support.prometheus import ScrapedPrometheus

ACCOUNT: Final = "predictor"


class Wave:
    """A load over time. Thread-safe: an exporter reads it while a test changes it."""

    def __init__(self, level: float) -> None:
        self._lock = threading.Lock()
        self._pieces = [(0.0, level, 0.0, level)]
        """The start of each piece (Unix seconds), its load then, its growth per second, its crest."""

    def __call__(self) -> float:
        return self.at(time.time())

    def at(self, moment: float) -> float:
        """Return the load at a moment, in Unix seconds."""
        with self._lock:
            begin, level, per_second, crest = max(piece for piece in self._pieces if piece[0] <= moment)
        return min(crest, level + per_second * (moment - begin))

    def stand(self, level: float) -> None:
        """Keep the load constant at this level from now on."""
        self._go_on((time.time(), level, 0.0, level))

    def rise(self, per_second: float, crest: float) -> float:
        """Let the load rise from its current level to a crest, where it stays, and return when the rise begins."""
        now = time.time()
        self._go_on((now, self.at(now), per_second, crest))
        return now

    def _go_on(self, piece: tuple[float, float, float, float]) -> None:
        with self._lock:
            self._pieces.append(piece)


@dataclass(slots=True)
class Predicting:
    """The surroundings of a recommender that predicts, with exactly the rights that its configuration needs."""

    cluster: Cluster
    namespace: str
    folder: Path
    prometheus_url: str
    pod_metrics: PodMetrics
    stack: ExitStack = field(default_factory=ExitStack)

    def workload(self, name: str, replicas: int = 1) -> Workload:
        """Make a Deployment."""
        found = Workload(self.cluster, self.namespace, name)
        found.create(replicas)
        return found

    def export(self, metric: str, load: Callable[[], float], **labels: str) -> None:
        """Export a series of the namespace until the test ends."""
        labels["namespace"] = self.namespace
        self.pod_metrics.set(metric, load, **labels)
        self.stack.callback(self.pod_metrics.set, metric, None, **labels)

    def configure(self, name: str, settings: Mapping[str, Any], *lines: str) -> None:
        """Write a configuration with one recommendation, which a running recommender reads again.

        Settings that are not given have the minimum that `run` needs.
        """
        least = {"horizon": "20s", "history": "10m", "headroom": "0%", "model": "linear"}
        top = (
            f"pollInterval: 1s\nstate: {self.folder}/state\nprometheus: {{url: {self.prometheus_url}}}\n"
            f"leaderElection: {{enabled: false, namespace: {self.namespace}}}\n"
        )
        one = entry(name, *lines, kind=f"predictive: {json.dumps({**least, **settings})}")
        replace_file(self._path, whole(one, top=top))

    def start(self) -> Recommender:
        """Start a recommender; return when it has made a decision."""
        given = service_account(
            self.cluster,
            self.namespace,
            ACCOUNT,
            self.folder,
            here=self.rules(self.namespace),
            everywhere=[rule([""], ["nodes"], "list"), *self.rules("")],
        )
        kubeconfig = self.stack.enter_context(given)
        found = started(self.folder / "recommender.log", "run", f"--config={self._path}", f"--kubeconfig={kubeconfig}")
        self.stack.enter_context(found.process)
        self.cluster.wait_for("a decision", found.items)
        return found

    def rules(self, namespace: str) -> list[Document]:
        """Return the RBAC rules for a namespace, or for all namespaces if it is empty."""
        configuration = read_configuration(self._path.read_text(), str(self._path))
        assert not configuration.refused
        rights = rights_of(
            configuration,
            namespace=self.namespace,
            resolve=lambda group, kind: find_resource(BUILT_IN, group, kind),
            memory_name=memory_object_name,
        )
        return [_rule(right) for right in rights if right.namespace == namespace]

    def requests(self, code: int, path: str = "") -> list[AuditEvent]:
        """Return the recommender's requests with this status, for one path or all, in the order of their answers."""
        user = f"system:serviceaccount:{self.namespace}:{ACCOUNT}"
        found = [event for event in self.cluster.audit_events() if event.user == user and event.code == code]
        return sorted((one for one in found if path in {"", one.uri.partition("?")[0]}), key=lambda one: one.end)

    @property
    def role(self) -> str:
        """Return the path of the namespace's role."""
        return f"/apis/{RBAC}/v1/namespaces/{self.namespace}/roles/{ACCOUNT}"

    @property
    def _path(self) -> Path:
        return self.folder / "recommender.yaml"


@pytest.fixture
def predicting(
    cluster: Cluster, namespace: str, prometheus: ScrapedPrometheus, pod_metrics: PodMetrics, tmp_path: Path
) -> Iterator[Predicting]:
    """Yield the surroundings of a recommender, which end with the test."""
    found = Predicting(cluster, namespace, tmp_path, prometheus.url, pod_metrics)
    with found.stack:
        yield found


def needed(load: float, per_replica: float) -> int:
    """Return how many replicas carry a load."""
    return math.ceil(load / per_replica - 1e-9)


def _rule(right: RoleRule) -> Document:
    resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
    return rule([right.api_group], [resource], " ".join(right.verbs), *right.names)
