"""The cost of a cluster size recommendation: `python -m benchmarks.cluster_size --nodes 5000 --pods 150000`.

The first row is the estimate of Cluster Autoscaler's own benchmark, beside the time that the peer takes for it. Then a
cluster with 30 node groups and pending pods of 60 workloads is made in its own size and in two and four times its size
(`--times`). It is written as one JSON file, read from it, and decided on, including scale-down. Each size has a process
of its own, so that its peak of memory is its own. Further rows are decisions for which one tenant's bound pods have
many anti-affinity terms, and decisions for pods that name one of 500 node groups. `--file-megabytes 1000` fills the
pods of the first size up to a file of this size. `--gaps 200` adds how far the estimates of small random clusters are
from the optimum, which an exact solver finds.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from adapter.foundation.cluster.files.reading import read_contents, state_of
from adapter.foundation.cluster.values.state import ClusterNeeds, Observed, Unknown
from adapter.foundation.objects.selectors import parse_selector
from adapter.foundation.service.runtime.garbage_collector import no_collections, rare_collections
from benchmarks.cluster_objects import GROUP_LABEL, GROUPS, ClusterPlan, cores_of, write_cluster
from benchmarks.named_groups import named_group_rows
from benchmarks.options import command_line
from benchmarks.packing_gaps import gap_rows, peer_estimate
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.tenant_terms import tenant_rows
from benchmarks.usage import usage
from recommender.kinds.cluster_size.calculate import decide_size
from recommender.kinds.cluster_size.model.size_settings import (
    ClusterSizeSettings,
    NodeGroupSources,
    ScaleDownSettings,
    StaticGroup,
)
from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
from recommender.kinds.cluster_size.node_groups.discover import node_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.cluster.values.state import ClusterState
    from benchmarks.progress import Progress
    from benchmarks.report import Cell, Report, Row
    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer

NAME: Final = "cluster_size"
PEER_SECONDS: Final = 3.13
"""The time of the peer's own benchmark on two shared AMD EPYC cores, measured on 2026-11-21: 2.89 to 3.33 s."""
NEEDS: Final = ClusterNeeds(nodes=True, pods=True, scheduling=True)
T = TypeVar("T")
_UNPADDED_POD_BYTES: Final = 900
_MIB: Final = 2**20
_NOW: Final = 1_796_000_000.0


@dataclass(frozen=True, slots=True)
class _Settings:
    plan: ClusterPlan
    times: tuple[int, ...]
    file_megabytes: int
    gaps: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if a result is wrong."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--pending", type=int, default=1000)
    parser.add_argument(
        "--times", type=_numbers, default=(1, 2, 4), metavar="N,N", help="how often the size; default 1,2,4"
    )
    parser.add_argument("--file-megabytes", type=int, default=0, help="size of the file that is read, at least")
    parser.add_argument("--gaps", type=int, default=0, help="how many small clusters an exact solver checks")
    options = parser.parse_args(arguments)
    plan = ClusterPlan(options.nodes, options.pods, options.pending)
    settings = _Settings(plan, options.times, options.file_megabytes, options.gaps)
    return run(NAME, options.output, lambda progress: measure(settings, progress))


def measure(settings: _Settings, progress: Progress) -> Report:
    """Run everything and return the report."""
    progress.say("the peer's estimate")
    rows = [peer_estimate(PEER_SECONDS)]
    for times in settings.times:
        progress.say(f"a cluster of {times} x {settings.plan.nodes} nodes")
        padding = max(0, settings.file_megabytes * 10**6 // max(1, settings.plan.pods) - _UNPADDED_POD_BYTES)
        plan = replace(
            settings.plan,
            nodes=times * settings.plan.nodes,
            pods=times * settings.plan.pods,
            pending=times * settings.plan.pending,
            padding_bytes=padding if times == 1 else 0,
        )
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
            rows += processes.submit(cluster_rows, plan).result()
    progress.say("anti-affinity terms of one tenant")
    rows += tenant_rows()
    progress.say("pods that name one of 500 node groups")
    rows += named_group_rows()
    if settings.gaps:
        progress.say("estimates beside the optimum")
        rows += gap_rows(settings.gaps)
    return report(NAME, rows)


def cluster_rows(plan: ClusterPlan) -> list[Row]:
    """Return the rows about reading one cluster and deciding on it in this process, which collects garbage rarely."""
    with rare_collections():
        return _cluster_rows(plan)


def _cluster_rows(plan: ClusterPlan) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="tidewatch-bench-") as folder:
        path = Path(folder) / "cluster.json"
        with path.open("w", encoding="utf-8") as stream:
            write_cluster(plan, stream)
        size_mib = round(path.stat().st_size / _MIB)
        began, cpu = time.perf_counter(), time.process_time()
        state = state_of(read_contents(path, needs=NEEDS), NEEDS, _NOW, path)
        read = time.perf_counter() - began
    about: Row = {"nodes": plan.nodes, "pods": plan.pods, "pending": plan.pending}
    reading: Row = {
        "case": "read the cluster from a JSON file",
        **about,
        "seconds": round(read, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "file_mib": size_mib,
        "peak_mib": usage(os.getpid()).peak_mib,
        "errors": len(state.left_out),
    }
    return [reading, *_decision_rows(state, plan, about)]


def _decision_rows(state: ClusterState, plan: ClusterPlan, about: Row) -> list[Row]:
    settings = ClusterSizeSettings(NodeGroupSources(static=_groups(plan)))
    without = replace(settings, scale_down=ScaleDownSettings(enabled=False))
    grown, growing = _decided("recommendation without scale-down", state, without)
    answer, whole = _decided("recommendation with scale-down", state, settings)
    new_nodes = sum(group.recommended - (group.current or 0) for group in grown.groups)
    bound = grown.bound
    growing |= {
        **about,
        "new_nodes": new_nodes,
        "bound_nodes": None if bound is None else bound.bound,
        "unschedulable_pods": sum(len(alike.pods) for alike in grown.unschedulable),
        "errors": 0 if new_nodes or not plan.pending else 1,
    }
    whole |= {
        **about,
        "removable_nodes": len(answer.removals),
        "kept_nodes": len(answer.kept),
        "peak_mib": usage(os.getpid()).peak_mib,
        "errors": 0 if len(answer.removals) + len(answer.kept) == plan.nodes else 1,
    }
    return [growing, whole]


def _decided(
    case: str, state: ClusterState, settings: ClusterSizeSettings
) -> tuple[ClusterSizeAnswer, dict[str, Cell]]:
    began, cpu = time.perf_counter(), time.process_time()
    with no_collections():  # as the command does
        answer = decide_size(_situation(state, settings), settings)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    return answer, {"case": case, "seconds": round(seconds, 2), "cpu_seconds": round(cpu_seconds, 2)}


def _situation(state: ClusterState, settings: ClusterSizeSettings) -> ClusterSituation:
    labels = state.namespace_labels
    budgets = state.disruption_budgets
    return ClusterSituation(
        now=_NOW,
        nodes=_known(state.nodes),
        pods=_known(state.pods),
        groups=node_groups(settings.node_groups, state, _NOW),
        workloads=_known(state.workloads),
        budgets=budgets.value if isinstance(budgets, Observed) else (),
        namespace_labels=labels.value if isinstance(labels, Observed) else {},
        storage=state.storage,
        waits=False,
    )


def _known(fact: Observed[tuple[T, ...]] | Unknown) -> tuple[T, ...]:
    assert isinstance(fact, Observed), fact.reason
    return fact.value


def _groups(plan: ClusterPlan) -> tuple[StaticGroup, ...]:
    return tuple(
        StaticGroup(
            f"group-{number:02}",
            0,
            plan.nodes,
            parse_selector(f"{GROUP_LABEL}=group-{number}"),
            float(cores_of(number)),
        )
        for number in range(GROUPS)
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
