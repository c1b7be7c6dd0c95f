"""The cost of serving the load of a large cluster's nodes: `python -m benchmarks.node_watcher --nodes 5000`.

A real `tidewatch-adapter nodes` watches a scripted cluster with that number of nodes, with ten pods on each and the
heartbeats of their kubelets, and queries a stand-in for Prometheus, whose loads are known. A client reads `/watcher` in
each form, one request after another on a connection that is kept alive, and checks every node's mean and deviation.
Then there are no requests for a while, so that the usage of the process is that of its refreshes. Finally, it is ended
by `kill -9`, and starts again from its file.

The floor is Flask handlers under the same server that send as many bytes, in the same run. The cost of a refresh for
Prometheus is measured with a real one, for fewer nodes.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from adapter.nodes.state_file.state_file import SAMPLES, StateFile
from benchmarks.cluster_stage import temporary_folder
from benchmarks.cores import Cores, on
from benchmarks.judging import WrongAnswerError
from benchmarks.kept_connection import get, measured, row_of
from benchmarks.node_query_cost import query_cost_row
from benchmarks.nodes_stage import PODS_OF_A_NODE, START_SECONDS, nodes_stage, running_floor, running_nodes
from benchmarks.options import between, command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.scripted_cluster import node_name
from benchmarks.usage import usage
from benchmarks.watcher_answers import WatcherJudge
from demo.machine.ports import fetched

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.kept_connection import Answer
    from benchmarks.nodes_stage import NodesStage, RunningNodes
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME = "node_watcher"
REFRESH_SECONDS = 30.0
STEADY_QUERIES = 5
"""The queries of a refresh: one for each resource that has series, and at times the survey. There are more while steps
of the past are still missing."""
LONGEST_FILL_SECONDS = 180.0
MOST_REAL_NODES = 200
"""Limit on the nodes in the real Prometheus, where a refresh reads samples in proportion to the nodes and their
CPUs."""
_GZIP = {"Accept_Encoding": "gzip"}
_PLAIN_SHARE = 5
"""Requests for the whole, uncompressed document are fewer than those for one node by this factor."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How long a row of requests is measured: until both values are reached."""

    requests: int
    """The number of requests of each small form."""
    least_seconds: float
    """By default the time between two refreshes, so that the row includes a whole refresh and the requests that it
    delays."""


class _Meaning(msgspec.Struct):
    meaning: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if an answer was wrong or missing."""
    options = _options(arguments)
    return run(
        NAME,
        options.output,
        lambda progress: measure(
            options.nodes, Extent(options.requests, options.row_seconds), options.seconds, progress
        ),
        expected=(OSError,),
    )


def measure(nodes: int, extent: Extent, seconds: float, progress: Progress) -> Report:
    """Run everything and return the report; `seconds` is how long refreshes are measured without requests.

    Raises ProcessFailedError, OSError.
    """
    cores = Cores.of_this_machine()
    with temporary_folder() as folder, nodes_stage(folder, nodes, cores) as stage, on(cores.others):
        progress.say(f"{nodes:,} nodes and {nodes * PODS_OF_A_NODE:,} pods")
        with running_nodes(stage, "nodes") as running:
            rows = [_start_row(stage, running, "start without a file")]
            until_filled(running, progress)
            rows += _watcher_rows(running, nodes, extent, progress)
            rows += _scrape_rows(running, nodes, progress)
            rows.append(_refresh_row(stage, running, seconds, progress))
            running.process.wait_until(stage.state_file.exists, START_SECONDS)
            running.process.kill()
        file_row = _file_row(stage.state_file)
        progress.say("restart from the file")
        with running_nodes(stage, "restarted") as running:
            rows += [_start_row(stage, running, "restart after kill -9, from the file"), file_row]
        with running_floor(stage) as floor:
            progress.say("floor")
            rows += _floor_rows(floor, rows, extent.requests)
        progress.say("a real Prometheus")
        rows.append(query_cost_row(folder / "prometheus", min(nodes, MOST_REAL_NODES)))
        return report(NAME, rows, nodes=nodes, pods=nodes * PODS_OF_A_NODE)


def until_filled(running: RunningNodes, progress: Progress) -> None:
    """Wait until refreshes query only the newest steps, as they do from then on."""
    until = time.monotonic() + LONGEST_FILL_SECONDS
    while _metric(running, "refresh_queries") > STEADY_QUERIES and time.monotonic() < until:
        progress.wait_until(time.monotonic() + 1.0, "the steps of the past come in")


def _start_row(stage: NodesStage, running: RunningNodes, load: str) -> Row:
    """Return how long after its start a process answers; its first answer must be right."""
    first = running.wait_for("/watcher")
    judge, errors = WatcherJudge(range(stage.nodes)), 0
    outcome = measured(running.port, [get("/watcher")], judge.plain, 1, warm_up=0)
    errors += outcome.errors
    window_age = time.time() - judge.window_end
    ready = running.wait_for("/readyz")
    return {
        "load": load,
        "errors": errors,
        "seconds_to_first_answer": round(first, 2),
        "seconds_to_ready": round(ready, 2),
        "window_age_seconds": round(window_age, 1),
    }


def _watcher_rows(running: RunningNodes, nodes: int, extent: Extent, progress: Progress) -> list[Row]:
    requests, whole = extent.requests, max(1, extent.requests // _PLAIN_SHARE)
    one_each = [get(f"/watcher?host={node_name(number * 7 % nodes)}") for number in range(min(nodes, 1000))]

    def row(load: str, sent: Sequence[bytes], judged: Callable[[WatcherJudge, Answer], None], count: int) -> Row:
        progress.say(load)
        judge, before = WatcherJudge(range(nodes)), usage(running.process.pid).cpu_seconds
        outcome = measured(
            running.port, sent, lambda answer: judged(judge, answer), count, seconds=extent.least_seconds
        )
        used = usage(running.process.pid).cpu_seconds - before
        for reason, times in outcome.reasons.items():
            progress.say(f"{load}: {times} x {reason}")
        found = row_of(load, outcome, judge.size)
        return {**found, "cpu_seconds": round(used, 2), "cpu_ms_per_answer": round(1000 * used / outcome.requests, 3)}

    return [
        row("/watcher", [get("/watcher")], WatcherJudge.plain, whole),
        row("/watcher, gzip", [get("/watcher", **_GZIP)], WatcherJudge.compressed, requests),
        row("/watcher?host=", one_each, WatcherJudge.of_one, requests),
        _unchanged_row(running, whole),
    ]


def _unchanged_row(running: RunningNodes, requests: int) -> Row:
    """Send the entity tag of the newest document with each request; a new document after a refresh is accepted, too."""
    tags = [b""]

    def remember(answer: Answer) -> None:
        tags[0] = answer.head.partition(b"\r\netag: ")[2].split(b"\r\n", 1)[0]

    judge = WatcherJudge(range(0))
    measured(running.port, [get("/watcher", **_GZIP)], remember, 1, warm_up=0)
    request = get("/watcher", Accept_Encoding="gzip", If_None_Match=tags[0].decode())

    def unchanged_or_new(answer: Answer) -> None:
        if answer.status != 200:
            judge.unchanged(answer)

    return row_of("/watcher, not modified", measured(running.port, [request], unchanged_or_new, requests), 0)


def _scrape_rows(running: RunningNodes, nodes: int, progress: Progress) -> list[Row]:
    progress.say("/metrics")
    size = [0]

    def judged(answer: Answer) -> None:
        size[0] = len(answer.body)
        is_compressed = b"content-encoding: gzip" in answer.head
        if answer.status != 200 or (not is_compressed and answer.body.count(b"\ntidewatch_node_utilization") < nodes):
            raise WrongAnswerError(f"status {answer.status}, or nodes are missing")

    rows = []
    for load, headers in (("/metrics", {}), ("/metrics, gzip", _GZIP)):
        outcome = measured(running.port, [get("/metrics", **headers)], judged, 30, warm_up=1)
        rows.append(row_of(load, outcome, size[0]))
    return rows


def _refresh_row(stage: NodesStage, running: RunningNodes, seconds: float, progress: Progress) -> Row:
    """Return the usage of a process that gets no requests: its refreshes, and the heartbeats of the nodes."""
    asked, used, began = stage.asked(), usage(running.process.pid), time.monotonic()
    progress.wait_until(began + seconds, "refreshes alone")
    asked_then, used_then, passed = stage.asked(), usage(running.process.pid), time.monotonic() - began
    cpu, queries = used_then.cpu_seconds - used.cpu_seconds, asked_then.queries - asked.queries
    return {
        "load": f"refreshes every {REFRESH_SECONDS:g} s",
        "errors": asked_then.refused,
        "seconds": round(passed, 1),
        "cpu_seconds": round(cpu, 2),
        "cpu_seconds_per_refresh": round(cpu * REFRESH_SECONDS / passed, 2),
        "refresh_seconds": round(_metric(running, "refresh_duration_seconds"), 2),
        "prometheus_queries": queries,
        "prometheus_queries_per_minute": round(60 * queries / passed, 1),
        "samples_answered_per_minute": round(60 * (asked_then.samples - asked.samples) / passed),
        "rss_mib": used_then.rss_mib,
        "pss_mib": used_then.pss_mib,
        "rss_peak_mib": used_then.peak_mib,
    }


def _metric(running: RunningNodes, name: str) -> float:
    """Return one of the process's own metrics; NaN if it has none of this name."""
    found = fetched(f"{running.url}/metrics").partition(f"\ntidewatch_adapter_{name} ".encode())[2]
    return float(found.split(b"\n", 1)[0] or "nan")


def _file_row(path: Path) -> Row:
    """Return how long it takes to read and to write the file of the process."""
    size, copy = path.stat().st_size, path.with_suffix(".copy")
    with path.open("rb") as file:
        meaning = msgspec.json.decode(file.readline(), type=_Meaning).meaning
    began = time.monotonic()
    samples = StateFile(path, meaning, SAMPLES).read()
    read = time.monotonic() - began
    began = time.monotonic()
    if samples is not None:
        writer = StateFile(copy, meaning, SAMPLES)
        writer.offer(samples)
        writer.write_if_due()
    written = time.monotonic() - began
    return {
        "load": "state file",
        "errors": int(not copy.exists() or copy.stat().st_size != size),
        "bytes": size,
        "read_ms": round(1000 * read, 1),
        "write_ms": round(1000 * written, 1),
    }


def _floor_rows(floor: RunningNodes, rows: Sequence[Row], requests: int) -> list[Row]:
    sizes = {str(row["load"]): int(row["bytes"] or 0) for row in rows if str(row["load"]).startswith("/watcher")}
    found = []
    for load, size in sizes.items():
        wanted = _of_size(size)
        path = f"/bytes/{size}" if size else "/empty"
        count = requests if size < 2**20 else max(1, requests // _PLAIN_SHARE)
        found.append(row_of(f"floor: the bytes of {load}", measured(floor.port, [get(path)], wanted, count), size))
    return found


def _of_size(size: int) -> Callable[[Answer], None]:
    def judged(answer: Answer) -> None:
        if answer.status != 200 or len(answer.body) != size:
            raise WrongAnswerError(f"status {answer.status} with {len(answer.body)} bytes")

    return judged


def add_row_seconds(parser: argparse.ArgumentParser) -> None:
    """Add the option that both benchmarks of nodes have in common."""
    parser.add_argument(
        "--row-seconds", type=float, default=REFRESH_SECONDS, help="least time for which requests of a kind are sent"
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line(NAME, __doc__)
    parser.add_argument("--nodes", type=between(1, 20_000), default=5000, help="nodes, each with ten pods")
    parser.add_argument("--requests", type=between(5, 100_000), default=3000, help="of each form that is small")
    add_row_seconds(parser)
    parser.add_argument("--seconds", type=float, default=90.0, help="how long refreshes are measured")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
