"""A real Thanos querier over two clusters, each with a Prometheus and a sidecar; no control plane is needed."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from demo.machine.ports import free_port
from demo.machine.processes import ManagedProcess, start
from demo.machine.prometheus import Access, PrometheusProcess
from tests.e2e.controlplane import programs
from tests.support.backfill import backfill
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

WITH_THANOS: Final = "E2E_THANOS"
"""The environment variable with which the tests of Thanos run."""
CLUSTER: Final = "cluster"
"""The external label by which the clusters are told apart."""

_READY_SECONDS: Final = 60.0
_HOST: Final = "127.0.0.1"


class Sidecar:
    """Gives the querier the samples of one cluster; its ports stay the same when it starts again."""

    def __init__(self, cluster: str, prometheus: PrometheusProcess) -> None:
        self.cluster = cluster
        self.address = f"{_HOST}:{free_port()}"
        self._log_path = prometheus.folder / "sidecar.log"
        self._flags = (
            f"--prometheus.url={prometheus.url}",
            f"--grpc-address={self.address}",
            f"--http-address={_HOST}:{free_port()}",
        )
        self._process: ManagedProcess | None = None

    def start(self) -> None:
        """Start the sidecar without waiting; the querier shows when it answers."""
        self._process = _component("sidecar", self._flags, self._log_path)

    def kill(self) -> None:
        """End the sidecar as a crash would: connections to it are refused."""
        if self._process is not None:
            self._process.kill()


@dataclass(frozen=True, slots=True)
class Querier:
    """One address that answers for all clusters, and that keeps each cluster's store when the store is down."""

    url: str
    sidecars: Mapping[str, Sidecar]
    """The sidecars by their cluster's name."""

    def ask(self, query: str) -> dict[str, Any]:
        """Return the whole answer to an instant query, fetched without any code of the product."""
        address = f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(address, timeout=10) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    def clusters(self) -> set[str]:
        """Return which clusters answer now."""
        try:
            found = self.ask(f"count by ({CLUSTER}) ({{__name__=~'.+'}})")["data"]["result"]
        except OSError:
            return set()
        return {each["metric"][CLUSTER] for each in found}

    @contextmanager
    def dead(self, cluster: str) -> Iterator[None]:
        """Kill the sidecar of a cluster for the block; afterwards it runs again."""
        self.sidecars[cluster].kill()
        try:
            yield
        finally:
            self.sidecars[cluster].start()
            until(lambda: self.clusters() == set(self.sidecars), _READY_SECONDS)


@contextmanager
def running_querier(folder: Path, clusters: Mapping[str, Iterable[str]]) -> Iterator[Querier]:
    """Run the querier and its clusters, and yield the querier when it answers for every cluster.

    `clusters` are the samples of each, as lines of OpenMetrics without the cluster's label, which is an external label
    of its Prometheus.
    """
    with ExitStack() as stack:
        sidecars = {}
        for cluster, lines in clusters.items():
            sidecar = Sidecar(cluster, _prometheus(stack, folder / cluster, cluster, lines))
            stack.callback(sidecar.kill)
            sidecar.start()
            sidecars[cluster] = sidecar
        address = f"{_HOST}:{free_port()}"
        flags = (
            f"--http-address={address}",
            f"--grpc-address={_HOST}:{free_port()}",
            "--query.replica-label=replica",
            *(f"--endpoint-strict={sidecar.address}" for sidecar in sidecars.values()),
        )
        process = stack.enter_context(_component("query", flags, folder / "query.log"))
        querier = Querier(f"http://{address}", sidecars)
        process.wait_until(lambda: querier.clusters() == set(sidecars), _READY_SECONDS)
        yield querier


def _prometheus(stack: ExitStack, folder: Path, cluster: str, lines: Iterable[str]) -> PrometheusProcess:
    backfill(folder, "\n".join([*lines, "# EOF", ""]))
    prometheus = PrometheusProcess(folder, (), Access())
    prometheus.configure({"global": {"external_labels": {CLUSTER: cluster, "replica": "a"}}})
    stack.callback(prometheus.stop)
    prometheus.start_on_a_free_port()
    return prometheus


def _component(component: str, flags: Iterable[str], log_path: Path) -> ManagedProcess:
    program = programs.find(programs.THANOS) / "thanos"
    return start([str(program), component, *flags], log_path=log_path, name=f"thanos {component}")
