"""The cost of a start on a small cluster: `python -m benchmarks.start_cost --starts 5`.

The processes are real: `serve`, `nodes` and `run` are measured until `/readyz` answers with 200, and `recommend` until
it ends. The servers watch a scripted cluster; `recommend` reads a file of a small one. Each row has the median
processor time of the whole process tree, user and system, and the median time. A row has an error for each `recommend`
without a value; a server that does not become ready ends the benchmark. Modules are compiled once, as they are in the
image, so the first start of a row may take longer.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.cluster_stage import temporary_folder
from benchmarks.nodes_stage import COMPILED_MODULES
from benchmarks.options import command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.start_stage import ENTRIES, MOST_TRIES, NODES, SERVERS, TAKEN, Ports, start_stage
from benchmarks.usage import usage
from demo.machine.processes import ProcessFailedError, start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row
    from benchmarks.start_stage import StartStage

NAME = "start_cost"
LONGEST_START_SECONDS = 60.0
PRODUCT = Path(sys.executable).with_name("tidewatch-recommender")


@dataclass(frozen=True, slots=True)
class StartCost:
    """The cost of one start."""

    cpu_seconds: float
    passed_seconds: float
    is_right: bool = True
    """Whether the command has succeeded."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if a start failed."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--starts", type=int, default=5, help="how many starts make a row")
    options = parser.parse_args(arguments)
    return run(NAME, options.output, lambda progress: measure(options.starts, progress))


def measure(starts: int, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError."""
    rows: list[Row] = []
    with temporary_folder() as folder, start_stage(folder) as stage:
        objects = folder / "objects"
        objects.mkdir()
        (objects / "all.json").write_bytes(msgspec.json.encode(_cluster()))
        for server in SERVERS:
            progress.say(server)
            rows.append(_row(server, [_started(stage, server) for _ in range(starts)]))
        for kind in ENTRIES:
            progress.say(f"recommend, {kind}")
            file = folder / f"{kind}.yaml"
            rows.append(_row(f"recommend, {kind}", [_recommended(file, objects) for _ in range(starts)]))
    return report(NAME, rows, nodes=NODES)


def _row(phase: str, found: Sequence[StartCost]) -> Row:
    return {
        "phase": phase,
        "errors": sum(not one.is_right for one in found),
        "cpu_s": round(statistics.median(one.cpu_seconds for one in found), 2),
        "passed_s": round(statistics.median(one.passed_seconds for one in found), 2),
    }


def _started(stage: StartStage, server: str) -> StartCost:
    """Return the cost of a server's start until it is ready. Raises ProcessFailedError.

    If a port is taken between the check and the start, other ports are tried.
    """
    log = stage.folder / "log"
    for _ in range(MOST_TRIES - 1):
        try:
            return _started_on(Ports.unused(), stage, server)
        except ProcessFailedError:
            if TAKEN not in log.read_text(errors="replace"):
                raise
    return _started_on(Ports.unused(), stage, server)


def _started_on(ports: Ports, stage: StartStage, server: str) -> StartCost:
    command = [*SERVERS[server](stage, ports), f"--plain-bind-address=127.0.0.1:{ports.plain}"]
    began = time.monotonic()
    with start(
        command, name=server, log_path=stage.folder / "log", folder=stage.folder, environment=COMPILED_MODULES
    ) as process:
        process.wait_until(ports.are_ready, LONGEST_START_SECONDS)
        return StartCost(usage(process.pid).cpu_seconds, time.monotonic() - began)


def _recommended(file: Path, objects: Path) -> StartCost:
    """Return the cost of one run of `recommend`."""
    command = [str(PRODUCT), "recommend", f"--config={file}", f"--cluster={objects}", "--output=json"]
    before, began = os.times(), time.monotonic()
    ended = subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        timeout=LONGEST_START_SECONDS,
        check=False,
        env={**os.environ, **COMPILED_MODULES},
    )
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return StartCost(cpu, time.monotonic() - began, ended.returncode == 0)


def _cluster() -> dict[str, object]:
    """Return nodes of the same size, the target, and objects of the kinds that are needed to size nodes."""
    capacity = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{place}", "uid": f"n{place}", "labels": {"pool": "all"}},
            "status": {
                "capacity": capacity,
                "allocatable": capacity,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for place in range(NODES)
    ]
    target = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "coredns", "namespace": "kube-system"},
        "spec": {"replicas": 2},
    }
    containers = [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "kube-system", "uid": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": containers}},
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "uid": "web"},
        "spec": {"nodeName": "n0", "containers": containers},
        "status": {"phase": "Running"},
    }
    return {"apiVersion": "v1", "kind": "List", "items": [*nodes, target, agent, pod]}


if __name__ == "__main__":
    sys.exit(main())
