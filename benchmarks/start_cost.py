"""What a start of the recommender takes on a small cluster: `python -m benchmarks.start_cost --starts 5`.

Real processes with a file of a small cluster: `run` until `/readyz` answers with 200, and `recommend` until it ends.
Each row has the median processor time of the whole process tree, user and system, and the median time. A row has an
error for each `recommend` without a value; a `run` that does not become ready ends the benchmark.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.cluster_stage import temporary_folder
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.usage import usage
from demo.machine.ports import free_port
from demo.machine.processes import start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME = "start_cost"
NODES = 10
LONGEST_START_SECONDS = 60.0
PRODUCT = Path(sys.executable).with_name("tidewatch-recommender")
KINDS = {
    "proportional": "proportional: {linear: {nodesPerReplica: 16}}\n"
    "  targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}]",
    "clusterSize": "clusterSize: {nodeGroups: {static: [{name: all, min: 1, max: 20, selector: {pool: all}}]}}",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 where a start failed."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{NAME}", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--starts", type=int, default=5, help="how many starts make a row")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    return run(NAME, options.output, lambda progress: measure(options.starts, progress))


def measure(starts: int, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError."""
    rows: list[Row] = []
    with temporary_folder() as folder:
        objects = folder / "objects"
        objects.mkdir()
        (objects / "all.json").write_bytes(msgspec.json.encode(_cluster()))
        for kind, entry in KINDS.items():
            file = folder / f"{kind}.yaml"
            file.write_text(
                f"apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\nstate: {folder}/state\n"
                f"recommendations:\n- name: one\n  {entry}\n"
            )
            for command in (_run, _recommend):
                name = command.__name__.strip("_")
                progress.say(f"{name}, {kind}")
                found = [command(file, objects, folder) for _ in range(starts)]
                rows.append(
                    {
                        "phase": f"{name}, {kind}",
                        "errors": sum(not is_right for is_right, _, _ in found),
                        "cpu_s": round(statistics.median(cpu for _, cpu, _ in found), 2),
                        "passed_s": round(statistics.median(passed for _, _, passed in found), 2),
                    }
                )
    return report(NAME, rows, nodes=NODES)


def _run(file: Path, objects: Path, folder: Path) -> tuple[bool, float, float]:
    """Return True, and processor time and time until it is ready, in seconds. Raises ProcessFailedError."""
    port = free_port()
    command = [
        str(PRODUCT),
        "run",
        f"--config={file}",
        f"--objects={objects}",
        f"--plain-bind-address=127.0.0.1:{port}",
    ]
    command += ["--bind-address=127.0.0.1", f"--port={free_port()}"]
    began = time.monotonic()
    with start(command, name="run", log_path=folder / "log", folder=folder) as process:
        process.wait_until(lambda: _is_ready(port), LONGEST_START_SECONDS)
        return True, usage(process.pid).cpu_seconds, time.monotonic() - began


def _recommend(file: Path, objects: Path, _folder: Path) -> tuple[bool, float, float]:
    """Return whether there is a value, and processor time and time, in seconds."""
    command = [str(PRODUCT), "recommend", f"--config={file}", f"--cluster={objects}", "--output=json"]
    before, began = os.times(), time.monotonic()
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=LONGEST_START_SECONDS, check=False)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return ended.returncode == 0, cpu, time.monotonic() - began


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _cluster() -> dict[str, object]:
    """Return nodes of the same size, the target, and the kinds of objects by which nodes are sized."""
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
