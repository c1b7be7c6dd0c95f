"""How long nodes are over 80% of their CPU on a day with batch pods: `python -m benchmarks.node_policies --days 10`.

The real kube-scheduler places each pod, with this program as its extender. The time is virtual: a day of slots of five
minutes passes as fast as pods are placed, and the extender answers from what `nodes` would know at that time, made by
the functions of the product from a week of loads (`simulated_nodes`). The load follows from where the pods are. Every
policy gets the same days, each of which has its own seed.

The rows are Kubernetes's defaults without an extender, the last 15 minutes alone (`target-load-packing`), `daily-peaks`
and `predicted-load-packing`. It needs the programs that `make e2e` builds, and Linux namespaces.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.forms.pods import PodForm
from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.web.http import Request
from adapter.nodes.extender.handlers import Extender
from adapter.nodes.model.day import SLOTS
from adapter.nodes.model.scheduling_settings import PolicyName, SchedulingSettings
from adapter.nodes.placement.pending_pod import OwnerSelectors, pending_pod
from benchmarks.control_plane_stage import NotPreparedError, enter_network
from benchmarks.options import between, command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.simulated_nodes import CORES_MILLI, HISTORY, NODES, minutes_over, simulated_nodes
from demo.machine.http_answers import AnswerHandler, serving
from tests.e2e.controlplane import network, programs
from tests.e2e.controlplane.cluster import running_cluster
from tests.e2e.controlplane.images import images
from tests.e2e.controlplane.nodes import NodeSpec, extra_nodes
from tests.e2e.controlplane.processes import Options
from tests.e2e.nodes.load_aware import pod as waiting_pod
from tests.e2e.nodes.load_aware import scheduler_configuration
from tests.e2e.support.recommenders import POOL

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from adapter.foundation.web.routes import Route
    from adapter.nodes.model.columns import PendingPod
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row
    from benchmarks.simulated_nodes import BatchPod, SimulatedNodes
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

NAME: Final = "node_policies"
POLICIES: Final = (None, PolicyName.TARGET_LOAD_PACKING, PolicyName.DAILY_PEAKS, PolicyName.PREDICTED_LOAD_PACKING)
"""The compared policies; None stands for Kubernetes's defaults."""
_BATCH: Final = "batch"
"""The namespace, the pool of the nodes, and the prefix of each scheduler's name."""
_PODS: Final = f"/api/v1/namespaces/{_BATCH}/pods"
_POD: Final = decoder_of(PodForm)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if a pod was not placed."""
    options = _options(arguments)

    def measured(progress: Progress) -> Report:
        enter_network()
        return measure(options.days, options.pods, options.seed, progress)

    return run(NAME, options.output, measured, (NotPreparedError, AssertionError))


def measure(days: int, pods: int, seed: int, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError, and AssertionError if a wait timed out."""
    with tempfile.TemporaryDirectory(prefix="tidewatch-bench-") as folder:
        running = running_cluster(
            Path(folder) / "cluster", programs.control_plane(), network.current(), Options(), images()
        )
        capacity = {"cpu": f"{CORES_MILLI}m", "memory": "64Gi", "pods": "110"}
        specs = [NodeSpec(name, capacity=capacity, labels={POOL: _BATCH}) for name in NODES]
        with running as cluster, extra_nodes(cluster.client, *specs):
            cluster.client.create("/api/v1/namespaces", {"metadata": {"name": _BATCH}})
            rows = [_row(cluster, policy, range(seed, seed + days), pods, progress) for policy in POLICIES]
            version = cluster.client.get("/version")["gitVersion"]
            return report(NAME, rows, kubernetes=version, nodes=len(NODES), pods_a_day=pods)


def _row(cluster: Cluster, policy: PolicyName | None, seeds: range, pods: int, progress: Progress) -> Row:
    minutes = []
    for seed in seeds:
        nodes = simulated_nodes(seed, pods)
        with _extender(cluster.network.host, policy) as extender:
            name = f"{_BATCH}-{policy or 'requests'}"
            with cluster.start_scheduler(_configuration(extender, name)):
                _play(cluster, nodes, extender, name)
        minutes.append(minutes_over(nodes))
        progress.say(f"{policy or 'requests'}, seed {seed}: {minutes[-1]} minutes over 80%")
    return {
        "policy": policy or "none: Kubernetes's defaults, by requests",
        "minutes_over_80_percent": sum(minutes),
        "by_day": ", ".join(map(str, minutes)),
        "errors": 0,
    }


def _play(cluster: Cluster, nodes: SimulatedNodes, extender: _ExtenderServer, scheduler: str) -> None:
    """Simulate the last day: pods arrive, are placed by the scheduler, and end."""
    arrivals = {slot: [pod for pod in nodes.arrivals if pod.starts == slot] for slot in range(HISTORY, HISTORY + SLOTS)}
    here: set[str] = set()
    try:
        for slot, coming in arrivals.items():
            nodes.advance(slot)
            for pod in nodes.ended(slot):
                _delete(cluster, pod, here)
            for pod in coming:
                extender.snapshot = nodes.snapshot(slot)
                nodes.place(pod, _placed_by(cluster, pod, scheduler))
                here.add(pod.name)
    finally:
        for pod in nodes.arrivals:
            _delete(cluster, pod, here)


def _placed_by(cluster: Cluster, pod: BatchPod, scheduler: str) -> str:
    """Create a pod and return the node that the scheduler binds it to."""
    cluster.client.create(_PODS, waiting_pod(pod.name, _BATCH, scheduler, f"{pod.request_milli}m"))
    path = f"{_PODS}/{pod.name}"
    return cluster.wait_for(f"a node for {pod.name}", lambda: str(cluster.client.get(path)["spec"].get("nodeName", "")))


def _delete(cluster: Cluster, pod: BatchPod, here: set[str]) -> None:
    if pod.name in here:
        here.remove(pod.name)
        cluster.client.delete(f"{_PODS}/{pod.name}", {"gracePeriodSeconds": 0})


def _configuration(extender: _ExtenderServer, name: str) -> Document:
    """Return the shipped configuration with the scores of one policy and no filter; without a policy, the defaults."""
    if extender.policy is None:
        return {"profiles": [{"schedulerName": name}]}
    found = scheduler_configuration(extender.url, name)
    (asked,) = found["extenders"]
    del asked["filterVerb"]
    asked |= {"urlPrefix": f"{extender.url}/scheduler/{extender.policy}", "ignorable": False, "httpTimeout": "10s"}
    return found


class _ExtenderServer(ThreadingHTTPServer):
    """Answers the scheduler from `snapshot`, which is set before each pod."""

    snapshot: NodesSnapshot

    def __init__(self, host: str, policy: PolicyName | None) -> None:
        super().__init__((host, 0), _Handler)
        self.policy = policy
        self.url = f"http://{host}:{self.server_port}"
        settings = SchedulingSettings()
        selectors = OwnerSelectors()

        def pending_of(raw: bytes) -> PendingPod:
            return pending_pod(_POD.decode(raw), selectors, settings.gpu)

        routes = Extender(lambda: self.snapshot, pending_of, settings).routes()
        self.routes: dict[str, Route] = {route.path: route for route in routes}


class _Handler(AnswerHandler):
    server: _ExtenderServer

    def do_POST(self) -> None:
        """Answer a call of the scheduler."""
        body = self.request_body()
        route = self.server.routes.get(self.path)
        if route is None:
            self.send_error(404)
            return
        answer = route.handle(Request("POST", self.path, body=body))
        self.answer(answer.body, answer.content_type, status=answer.status)


@contextmanager
def _extender(host: str, policy: PolicyName | None) -> Iterator[_ExtenderServer]:
    server = _ExtenderServer(host, policy)
    with serving(server):
        yield server


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line(NAME, __doc__)
    parser.add_argument("--days", type=between(1, 100), default=10, help="days, each of its own seed")
    parser.add_argument("--pods", type=between(1, 300), default=120, help="batch pods of a day")
    parser.add_argument("--seed", type=between(0, 1_000_000), default=0, help="of the first day")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
