"""A recommender in a large cluster: `python -m benchmarks.recommender_cluster --nodes 5000 --pods 50000 …`.

A real `tidewatch-recommender run` watches a scripted API server. The rows are nodes alone, idle and with the heartbeats
of kubelets; pods and services as well; and the floor, a program that reads the same heartbeats over HTTP and does
nothing with them. Memory is that of the whole process tree, and so is the processor time, per poll of 10 s. A row has
an error if the recommendation does not fit the cluster's size.
"""

from __future__ import annotations

import math
import re
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from benchmarks.cluster_stage import CHECKOUT, HEARTBEATS_PER_SECOND, scripted_api_server, temporary_folder
from benchmarks.cores import Cores, on
from benchmarks.options import command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.usage import usage
from demo.machine.ports import free_port
from demo.machine.processes import start

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row
    from demo.machine.processes import ManagedProcess

NAME = "recommender_cluster"
POLL_SECONDS = 10.0
NODES_PER_REPLICA = 16
OBJECTS_PER_REPLICA = 200
FIRST_LISTS_SECONDS = 180.0
SETTLE_SECONDS = 3.0
PRODUCT = Path(sys.executable).with_name("tidewatch-recommender")
_VALUE = re.compile(r"^tidewatch_recommended_replicas\{[^}]*\} (\S+)$", re.MULTILINE)
_DECISION = re.compile(r"^tidewatch_recommender_decision_duration_seconds_(sum|count)\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ClusterSizes:
    """The size of the cluster, and the duration of each row."""

    nodes: int
    pods: int
    services: int
    seconds: float
    """How long each row is measured."""

    @property
    def of_kinds(self) -> dict[str, int]:
        """How many objects of each kind there are."""
        return {"nodes": self.nodes, "pods": self.pods, "services": self.services}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if a recommendation was wrong."""
    options = _options(arguments)
    sizes = ClusterSizes(options.nodes, options.pods, options.services, options.seconds)
    return run(NAME, options.output, lambda progress: measure(sizes, progress))


def measure(sizes: ClusterSizes, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError."""
    cores = Cores.of_this_machine()
    rows = [
        _recommender("nodes, idle", sizes, 0.0, progress, cores, counts=False),
        _recommender("nodes, heartbeats", sizes, HEARTBEATS_PER_SECOND, progress, cores, counts=False),
        _recommender(
            "nodes, pods and services, heartbeats", sizes, HEARTBEATS_PER_SECOND, progress, cores, counts=True
        ),
        _floor(sizes, progress, cores),
    ]
    return report(NAME, rows, nodes=sizes.nodes, pods=sizes.pods, services=sizes.services)


def _recommender(
    phase: str, sizes: ClusterSizes, heartbeats: float, progress: Progress, cores: Cores, *, counts: bool
) -> Row:
    with temporary_folder() as folder, scripted_api_server(sizes.of_kinds, heartbeats, folder, cores) as api_server:
        plain, page = free_port(), free_port()
        configuration = folder / "recommender.yaml"
        configuration.write_text(yaml.safe_dump(_configuration(counts=counts)))
        command = [str(PRODUCT), "run", f"--config={configuration}", f"--kubeconfig={api_server.kubeconfig}"]
        command += ["--dry-run", f"--port={page}", f"--plain-bind-address=127.0.0.1:{plain}"]
        with on(cores.measured):
            process = start(command, name="recommender", log_path=folder / "recommender.log", folder=folder)
        with process:
            began = time.monotonic()
            process.wait_until(lambda: _value(plain) is not None, FIRST_LISTS_SECONDS)
            ready = time.monotonic() - began
            progress.wait_until(time.monotonic() + SETTLE_SECONDS, phase)
            cpu = _cpu_milliseconds(process, sizes.seconds, phase, progress)
            found = usage(process.pid)
            total, number = _decisions(plain)
            value = _value(plain)
        expected = _expected(sizes, counts=counts)
        return {
            "phase": phase,
            "errors": int(value != expected),
            "replicas": value,
            "first_value_s": round(ready, 1),
            "rss_mib": found.rss_mib,
            "pss_mib": found.pss_mib,
            "peak_mib": found.peak_mib,
            "cpu_ms_per_poll": cpu,
            "decision_ms": round(1000 * total / max(1, number), 2),
            "decisions": int(number),
        }


def _floor(sizes: ClusterSizes, progress: Progress, cores: Cores) -> Row:
    with (
        temporary_folder() as folder,
        scripted_api_server(sizes.of_kinds, HEARTBEATS_PER_SECOND, folder, cores) as api_server,
    ):
        command = [sys.executable, "-m", "benchmarks.bare_watcher", str(api_server.port)]
        with on(cores.measured):
            process = start(command, name="floor", log_path=folder / "floor.log", folder=CHECKOUT)
        with process:
            progress.wait_until(time.monotonic() + SETTLE_SECONDS, "floor")
            cpu = _cpu_milliseconds(process, sizes.seconds, "floor", progress)
            found = usage(process.pid)
        return {
            "phase": "floor, heartbeats",
            "errors": 0,
            "rss_mib": found.rss_mib,
            "pss_mib": found.pss_mib,
            "peak_mib": found.peak_mib,
            "cpu_ms_per_poll": cpu,
        }


def _cpu_milliseconds(process: ManagedProcess, seconds: float, phase: str, progress: Progress) -> float:
    """Return the processor time of a process tree per 10 s, on average."""
    before, began = usage(process.pid).cpu_seconds, time.monotonic()
    progress.wait_until(began + seconds, phase)
    used, passed = usage(process.pid).cpu_seconds - before, time.monotonic() - began
    return round(1000 * used * POLL_SECONDS / passed, 1)


def _configuration(*, counts: bool) -> dict[str, object]:
    proportional: dict[str, object] = {"linear": {"nodesPerReplica": NODES_PER_REPLICA}}
    if counts:
        proportional["drivers"] = {kind: {"perReplica": OBJECTS_PER_REPLICA} for kind in ("pods", "services")}
    return {
        "apiVersion": "tidewatch.io/v1alpha1",
        "kind": "RecommenderConfiguration",
        "recommendations": [{"name": "dns", "proportional": proportional}],
    }


def _expected(sizes: ClusterSizes, *, counts: bool) -> float:
    by_nodes = math.ceil(sizes.nodes / NODES_PER_REPLICA)
    by_counts = math.ceil(max(sizes.pods, sizes.services) / OBJECTS_PER_REPLICA) if counts else 0
    return float(max(1, by_nodes, by_counts))


def _metrics(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            body: bytes = answer.read()
            return body.decode()
    except OSError:
        return ""


def _value(port: int) -> float | None:
    found = _VALUE.search(_metrics(port))
    return float(found[1]) if found else None


def _decisions(port: int) -> tuple[float, float]:
    """Return the total duration of decisions, in seconds, and their number."""
    found = {what: float(value) for what, value in _DECISION.findall(_metrics(port))}
    return found.get("sum", 0.0), found.get("count", 0.0)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line(NAME, __doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--services", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each row is measured")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
