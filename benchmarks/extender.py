"""The cost of scores for kube-scheduler: `python -m benchmarks.extender --names 5000`.

A real `tidewatch-adapter nodes` watches a scripted cluster with that number of nodes and ten pods on each, and queries
a stand-in for Prometheus; a client requests scores as kube-scheduler does, one request after another on a connection
that is kept alive. Every answer is checked: each name, in order, and the score that follows from the load of its node.

The rows are `/scheduler/prioritize` with two policies, with 500 names and with all of them; the filter; each policy
alone; whole Node objects instead of names; the same requests after a `kill -9`, when scores must be the middle one
until there is data; and the floor in the same run, which is Flask handlers under the same server that do next to
nothing.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from adapter.nodes.model.scheduling_settings import PolicyName
from benchmarks.cluster_stage import temporary_folder
from benchmarks.cores import Cores, on
from benchmarks.feasible_nodes import names_in_a_request
from benchmarks.judging import WrongAnswerError
from benchmarks.kept_connection import KeptConnection, get, measured, post, row_of
from benchmarks.node_watcher import Extent, add_row_seconds, until_filled
from benchmarks.nodes_stage import PODS_OF_A_NODE, START_SECONDS, nodes_stage, running_floor, running_nodes
from benchmarks.options import between, command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.score_answers import POD_LIMIT_CORES, POD_REQUEST_CORES, ScoreJudge
from benchmarks.scripted_cluster import node, node_name
from benchmarks.usage import usage

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from benchmarks.kept_connection import Answer
    from benchmarks.nodes_stage import NodesStage, RunningNodes
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row
    from benchmarks.tally import Outcome

NAME = "extender"
FEW_NAMES = names_in_a_request(5000)
WHOLE_NODES = 100
PRIORITIZE = "/scheduler/prioritize"
_RETRY_SECONDS = 0.02
_ON_METRICS_FOR = 20
"""The number of answers based on metrics after which the row of a restart ends."""
_RESOURCES = {
    "requests": {"cpu": f"{POD_REQUEST_CORES:g}", "memory": "512Mi"},
    "limits": {"cpu": f"{POD_LIMIT_CORES:g}", "memory": "1Gi"},
}
POD = {
    "metadata": {"name": "app-0-new", "namespace": "team-0", "uid": "new", "labels": {"app": "app-0"}},
    "spec": {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "container-0", "image": "registry.example.com/app", "resources": _RESOURCES}],
    },
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if an answer was wrong or missing."""
    options = _options(arguments)
    return run(
        NAME,
        options.output,
        lambda progress: measure(options.names, Extent(options.requests, options.row_seconds), progress),
        expected=(OSError,),
    )


def measure(names: int, extent: Extent, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError, OSError."""
    cores = Cores.of_this_machine()
    with temporary_folder() as folder, nodes_stage(folder, names, cores) as stage, on(cores.others):
        with running_floor(stage) as floor:
            progress.say("floor")
            floor_rows = _floor_rows(floor, names, extent.requests)
        with running_nodes(stage, "nodes", state=False) as nodes:
            progress.say(f"{names:,} nodes and {names * PODS_OF_A_NODE:,} pods")
            nodes.wait_for("/watcher")
            rows = _rows(nodes, names, extent, progress)
            nodes.process.kill()
        progress.say("restart under requests")
        with running_nodes(stage, "restarted", state=False) as nodes:
            restart = _restart_row(stage, nodes, min(FEW_NAMES, names))
        return report(NAME, [*rows, restart, *floor_rows], nodes=names, pods=names * PODS_OF_A_NODE)


def _rows(nodes: RunningNodes, names: int, extent: Extent, progress: Progress) -> list[Row]:
    def row(
        load: str,
        path: str,
        size: int,
        judged: Callable[[ScoreJudge, Answer], None],
        count: int,
        least_seconds: float = 0.0,
    ) -> Row:
        progress.say(f"{load}, {size:,} names")
        judge = judge_of(size)
        before, began = usage(nodes.process.pid).cpu_seconds, time.monotonic()
        outcome = measured(
            nodes.port,
            [post(path, extender_arguments(size))],
            lambda answer: judged(judge, answer),
            count,
            seconds=least_seconds,
        )
        found, seconds = usage(nodes.process.pid), time.monotonic() - began
        _say_reasons(progress, load, outcome)
        return {
            **row_of(f"{load}, {size:,} names", outcome, judge.size),
            "cpu_ms_per_answer": round(1000 * (found.cpu_seconds - before) / max(1, outcome.requests), 3),
            "cpu_seconds": round(found.cpu_seconds - before, 2),
            "seconds": round(seconds, 1),
            "rss_mib": found.rss_mib,
        }

    # While steps of the past are missing, a window does not have as many high spans as low ones.
    until_filled(nodes, progress)
    sizes, few = sorted({min(FEW_NAMES, names), names}), max(1, extent.requests // 5)
    alone = [
        row(
            f"{policy} alone",
            f"/scheduler/{policy}/prioritize",
            names,
            ScoreJudge.any_scores,
            max(1, extent.requests // 20),
        )
        for policy in PolicyName
    ]
    alone.append(_whole_nodes_row(nodes, min(WHOLE_NODES, names), few, progress))
    rows = [
        row("prioritize by two policies", PRIORITIZE, size, ScoreJudge.two_policies, few, extent.least_seconds)
        for size in sizes
    ]
    rows += [row("filter", "/scheduler/filter", size, ScoreJudge.filtered, few, extent.least_seconds) for size in sizes]
    return [*rows, *alone]


def _whole_nodes_row(nodes: RunningNodes, size: int, requests: int, progress: Progress) -> Row:
    body = json.dumps({"Pod": POD, "Nodes": {"items": [node(number) for number in range(size)]}, "NodeNames": None})
    judge = judge_of(size)
    load = f"prioritize by two policies, {size:,} whole nodes ({len(body):,} bytes)"
    outcome = measured(nodes.port, [post(PRIORITIZE, body.encode())], judge.two_policies, requests)
    _say_reasons(progress, load, outcome)
    return row_of(load, outcome, judge.size)


def _say_reasons(progress: Progress, load: str, outcome: Outcome) -> None:
    for reason, times in outcome.reasons.items():
        progress.say(f"{load}: {times} x {reason}")


def _restart_row(stage: NodesStage, nodes: RunningNodes, size: int) -> Row:
    """Send requests from a process's start until its scores rest on metrics; earlier answers must be right, too."""
    request, judge = post(PRIORITIZE, extender_arguments(size)), judge_of(size)
    first = on_metrics = None
    middle = errors = good = 0
    while good < _ON_METRICS_FOR and time.monotonic() - nodes.began < START_SECONDS:
        try:
            with KeptConnection(nodes.port) as connection:
                answer = connection.ask(request)
        except OSError:
            time.sleep(_RETRY_SECONDS)
            continue
        passed = time.monotonic() - nodes.began
        first = first or passed
        rests_on_metrics = b"tidewatch-basis: metrics" in answer.head
        on_metrics = on_metrics or (passed if rests_on_metrics else None)
        try:
            (judge.two_policies if rests_on_metrics else judge.middle)(answer)
        except WrongAnswerError:
            errors += 1
        middle, good = middle + (not rests_on_metrics), good + rests_on_metrics
        time.sleep(_RETRY_SECONDS)
    return {
        "load": f"restart after kill -9, {size:,} names",
        "errors": errors + int(good < _ON_METRICS_FOR),
        "requests": middle + good,
        "answers_with_middle_score": middle,
        "seconds_to_first_answer": first and round(first, 2),
        "seconds_to_metrics": on_metrics and round(on_metrics, 2),
        "prometheus_queries": stage.asked().queries,
    }


def _floor_rows(floor: RunningNodes, names: int, requests: int) -> list[Row]:
    empty = measured(floor.port, [get("/empty")], _judge_status, requests)
    rows = [row_of("floor: an empty handler", empty, 0)]
    for size in sorted({min(FEW_NAMES, names), names}):
        judge = judge_of(size)
        outcome = measured(floor.port, [post("/prioritize", extender_arguments(size))], judge.middle, requests)
        rows.append(row_of(f"floor: names decoded, constant scores, {size:,} names", outcome, judge.size))
    return rows


def _judge_status(answer: Answer) -> None:
    if answer.status != 200:
        raise WrongAnswerError(f"status {answer.status}")


def judge_of(size: int) -> ScoreJudge:
    """Return the judge of the scores of this number of names."""
    return ScoreJudge([node_name(number) for number in range(size)], range(size))


def extender_arguments(size: int) -> bytes:
    """Return the body of a request with this number of names."""
    names = [node_name(number) for number in range(size)]
    return json.dumps({"Pod": POD, "Nodes": None, "NodeNames": names}, separators=(",", ":")).encode()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line(NAME, __doc__)
    parser.add_argument("--names", type=between(2, 20_000), default=5000, help="nodes, and names in a request")
    parser.add_argument(
        "--requests", type=between(20, 100_000), default=5000, help="of the floor; a fifth for each row"
    )
    add_row_seconds(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
