"""The drop-in for cluster-proportional-autoscaler: `python -m benchmarks.proportional_limits --nodes 5000`.

A real `tidewatch-recommender proportional` watches a scripted API server. Three rows have memory, and processor time
per poll of 10 s: idle, with the heartbeats of kubelets, and with the page, which is requested once. If this machine
allows control groups, further rows have the time until `/healthz` answers within limits, and with the flags and limits
of each manifest of the peer. A row has an error if the recommendation does not fit the number of nodes, if there are
several processes, if `/healthz` or the page does not answer, or if the kubelet would have killed the container by then.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cluster_stage import HEARTBEATS_PER_SECOND, scripted_api_server, temporary_folder
from benchmarks.cores import Cores, on
from benchmarks.limited_group import limited_group
from benchmarks.options import command_line
from benchmarks.peer_manifests import PEER_MANIFESTS, PeerManifest
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.usage import usage
from demo.machine.ports import free_port
from demo.machine.processes import start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.cluster_stage import ApiServer
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME = "proportional_limits"
POLL_SECONDS = 10.0
NODES_PER_REPLICA = 16
FIRST_LISTS_SECONDS = 120.0
SETTLE_SECONDS = 3.0
FEW_NODES = 10
LIMITS = ((100, 64), (20, 64))
"""Limits in thousandths of a core and in MiB: the CPU is that of manifests, the memory that of the documentation."""
ARGUMENTS = (
    "--target=deployment/coredns",
    "--configmap=dns-autoscaler",
    f'--default-params={{"linear": {{"nodesPerReplica": {NODES_PER_REPLICA}}}}}',
)
"""The flags of the command; the parameters are those for a missing ConfigMap."""
PRODUCT = Path(sys.executable).with_name("tidewatch-recommender")
_VALUE = re.compile(r"^tidewatch_recommended_replicas\{[^}]*\} (\S+)$", re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if a row has an error."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each row is measured")
    parser.add_argument(
        "--limits", action=argparse.BooleanOptionalAction, default=True, help="start within limits, too"
    )
    options = parser.parse_args(arguments)
    return run(NAME, options.output, lambda progress: measure(options.nodes, options.seconds, options.limits, progress))


def measure(nodes: int, seconds: float, limits: bool, progress: Progress) -> Report:  # noqa: FBT001 - from a flag
    """Run everything and return the report. Raises ProcessFailedError."""
    cores = Cores.of_this_machine()
    rows = [
        _running("idle", nodes, 0.0, seconds, progress, cores),
        _running("heartbeats", nodes, HEARTBEATS_PER_SECOND, seconds, progress, cores),
        _running("page", nodes, 0.0, seconds, progress, cores, free_port()),
    ]
    limited = [
        *(
            PeerManifest(name=f"in {cpu}m and {memory} MiB", arguments=ARGUMENTS, cpu_milli=cpu, memory_mib=memory)
            for cpu, memory in LIMITS
        ),
        *PEER_MANIFESTS,
    ]
    for few_or_all, manifest in itertools.product((FEW_NODES, nodes), limited) if limits else ():
        row = _limited(few_or_all, manifest, progress, cores)
        if row is not None:
            rows.append(row)
    return report(NAME, rows, nodes=nodes)


def _running(
    phase: str,
    nodes: int,
    heartbeats: float,
    seconds: float,
    progress: Progress,
    cores: Cores,
    page_port: int | None = None,
) -> Row:
    with temporary_folder() as folder, scripted_api_server({"nodes": nodes}, heartbeats, folder, cores) as api_server:
        port = free_port()
        command = [*_command(api_server, port), *([f"--port={page_port}"] if page_port else [])]
        with on(cores.measured):
            process = start(command, name="proportional", log_path=folder / "log", folder=folder)
        with process:
            began = time.monotonic()
            process.wait_until(lambda: _value(port) is not None, FIRST_LISTS_SECONDS)
            first_value = time.monotonic() - began
            is_whole = page_port is None or _asked(page_port, "/") is not None
            progress.wait_until(time.monotonic() + SETTLE_SECONDS, phase)
            before, began = _cpu_seconds(process.pid), time.monotonic()
            progress.wait_until(began + seconds, phase)
            used, passed = _cpu_seconds(process.pid) - before, time.monotonic() - began
            found = usage(process.pid)
            value = _value(port)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return {
        "phase": phase,
        "errors": int(not is_whole) + int(value != max(1, math.ceil(nodes / NODES_PER_REPLICA))) + len(children),
        "replicas": value,
        "first_value_s": round(first_value, 1),
        "rss_mib": found.rss_mib,
        "peak_mib": found.peak_mib,
        "cpu_ms_per_poll": round(1000 * used * POLL_SECONDS / passed, 1),
    }


def _limited(nodes: int, manifest: PeerManifest, progress: Progress, cores: Cores) -> Row | None:
    """Return how long `/healthz` takes to answer within limits; None if no control group can be made."""
    phase = f"{nodes} nodes, {manifest.name}"
    progress.say(phase)
    with (
        temporary_folder() as folder,
        scripted_api_server({"nodes": nodes}, 0.0, folder, cores) as api_server,
        limited_group(manifest.cpu_milli, manifest.memory_mib) as within,
    ):
        if within is None:
            progress.say("no control group can be made here, so nothing is measured within limits")
            return None
        port = free_port()
        command = [*within, *_command(api_server, port, manifest.arguments)]
        began = time.monotonic()
        with start(command, name="proportional", log_path=folder / "log", folder=folder) as process:
            process.wait_until(lambda: _answers(port), FIRST_LISTS_SECONDS)
            healthy = time.monotonic() - began
            process.wait_until(lambda: _value(port) is not None, FIRST_LISTS_SECONDS)
            return {
                "phase": phase,
                "errors": int(healthy > (manifest.killed_after_seconds or math.inf)),
                "replicas": _value(port),
                "healthz_s": round(healthy, 2),
                "killed_after_s": manifest.killed_after_seconds,
                "memory_limit_mib": manifest.memory_mib,
                "first_value_s": round(time.monotonic() - began, 1),
                "peak_mib": usage(process.pid).peak_mib,
            }


def _command(api_server: ApiServer, port: int, arguments: Sequence[str] = ARGUMENTS) -> list[str]:
    """Return the command, which does not write to the cluster."""
    return [
        str(PRODUCT),
        "proportional",
        "--namespace=kube-system",
        *arguments,
        "--dry-run",
        f"--kubeconfig={api_server.kubeconfig}",
        f"--plain-bind-address=127.0.0.1:{port}",
    ]


def _cpu_seconds(pid: int) -> float:
    """Return the processor time of a process from its own clock, since `usage` counts in steps of 10 ms."""
    return time.clock_gettime((~pid << 3) | 2)


def _asked(port: int, path: str) -> str | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            body: bytes = answer.read()
            return body.decode()
    except OSError:
        return None


def _answers(port: int) -> bool:
    return _asked(port, "/healthz") is not None


def _value(port: int) -> float | None:
    found = _VALUE.search(_asked(port, "/metrics") or "")
    return float(found[1]) if found else None


if __name__ == "__main__":
    sys.exit(main())
