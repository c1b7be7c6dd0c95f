"""What `/watcher` of a large cluster costs: `python -m benchmarks.node_watcher --nodes 5000`.

A real Prometheus holds node_exporter's series of all nodes. The rows are: one refresh (with what it costs Prometheus),
the first answer after a start without and with the local file, `/watcher` plain and compressed, one host, a scrape of
the own metrics, and the floor: an empty Flask handler under the same server.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.cores import Cores, on
from benchmarks.empty_server import running_floor
from benchmarks.node_stage import START_SECONDS, node_name, node_stage, running_nodes, wait_for_data
from benchmarks.one_client import ask
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.usage import usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.node_stage import RunningNodes
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME: Final = "node_watcher"
REFRESHES: Final = 2
REFRESH_SECONDS: Final = 30.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 where an answer was wrong or missing."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{NAME}", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, help="default: ten for each node")
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    pods = 10 * options.nodes if options.pods is None else options.pods
    return run(NAME, options.output, lambda progress: measure(options.nodes, pods, options.requests, progress))


def measure(nodes: int, pods: int, requests: int, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError."""
    cores = Cores.of_this_machine()
    with tempfile.TemporaryDirectory(prefix="tidewatch-bench-") as name:
        folder = Path(name)
        progress.say(f"writing the series of {nodes} nodes")
        with on(cores.others), node_stage(folder, nodes, pods) as prometheus:
            flags = (f"--objects={folder / 'objects'}", f"--state={folder / 'samples'}")
            rows: list[Row] = []
            with on(cores.measured), running_nodes(folder, prometheus, *flags) as first, on(cores.others):
                rows.append(_start_row("first answer without the local file", wait_for_data(first)))
                rows.append(_refresh_row(first, progress))
                _wait_for_file(folder / "samples")
            with on(cores.measured), running_nodes(folder, prometheus, *flags) as running, on(cores.others):
                rows.append(_start_row("first answer after a restart", wait_for_data(running)))
                progress.wait_until(time.monotonic() + 8.0, "first refresh")
                rows += _answer_rows(running, requests)
                memory = usage(running.process.pid)
            with on(cores.measured), running_floor(folder, 0) as port, on(cores.others):
                rows.append(ask(port, "/get", requests).row("floor: empty Flask handler"))
    return report(NAME, [{"nodes": nodes, "pods": pods, "rss_mib": memory.rss_mib, **row} for row in rows])


def _start_row(what: str, seconds: float) -> Row:
    return {"what": what, "seconds": round(seconds, 2), "errors": 0}


def _refresh_row(running: RunningNodes, progress: Progress) -> Row:
    """Return what a refresh costs on average, once the windows are complete."""
    progress.wait_until(time.monotonic() + REFRESH_SECONDS, "the windows fill")
    queries = "tidewatch_adapter_prometheus_queries_total"
    before, cpu, read = running.metric(queries), usage(running.process.pid).cpu_seconds, running.samples_read()
    progress.wait_until(time.monotonic() + REFRESHES * REFRESH_SECONDS, "refreshing")
    after, cpu_after, read_after = (
        running.metric(queries),
        usage(running.process.pid).cpu_seconds,
        running.samples_read(),
    )
    return {
        "what": "one refresh",
        "cpu_seconds": round((cpu_after - cpu) / REFRESHES, 2),
        "seconds": round(running.metric("tidewatch_adapter_refresh_duration_seconds"), 2),
        "prometheus_queries": round((after - before) / REFRESHES, 1),
        "prometheus_samples": round((read_after - read) / REFRESHES),
        "errors": 0,
    }


def _answer_rows(running: RunningNodes, requests: int) -> list[Row]:
    host = f"/watcher?host={node_name(0)}"
    return [
        ask(running.port, "/watcher", requests).row("GET /watcher"),
        ask(running.port, "/watcher", requests, packed=True).row("GET /watcher, gzip"),
        ask(running.port, host, requests).row("GET /watcher?host="),
        ask(running.port, "/metrics", max(3, requests // 30), packed=True).row("GET /metrics, gzip"),
    ]


def _wait_for_file(path: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
