"""The share of a cluster's GPUs that policies allocate: `python -m benchmarks.gpu_fragmentation --nodes F --pods F`.

Pods arrive in random order, and then as random draws from the list, until they have requested 130% of the GPUs; no pod
ever ends. All six policies see the same arrivals. The lists of the published experiments ("Beware of Fragmentation",
USENIX ATC 2023) are in the repository hkust-adsl/kubernetes-scheduler-simulator; for these, the published figures are
shown beside the measured ones.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Final

from benchmarks.gpu_choices import Kinds
from benchmarks.gpu_cluster import UNTIL_PERCENT, ClusterError, allocated_percent
from benchmarks.gpu_lists import WHOLE_MILLI, ListError, arrivals, read_nodes, read_pods
from benchmarks.gpu_plot import PlotError, write_plot
from benchmarks.gpu_policies import policies
from benchmarks.options import command_line
from benchmarks.report import report
from benchmarks.running import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.gpu_lists import Arrival, GpuNode
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME: Final = "gpu_fragmentation"
PUBLISHED: Final = {
    "random": (86.30, 87.47),
    "dot-product": (90.62, 90.85),
    "best-fit": (92.86, 93.08),
    "gpu-packing": (91.78, 92.00),
    "fgd": (95.23, 95.39),
}
"""The allocated percentage at 100% and at 130%, as the mean of ten shuffles of the published lists."""
_PUBLISHED_LISTS: Final = (1523, 6212, 8152)
"""The numbers of nodes, GPUs and pods of the published lists."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The cluster and the arrivals to measure."""

    nodes: tuple[GpuNode, ...]
    pods: tuple[Arrival, ...]
    shuffles: int = 10
    seed: int = 0
    plot: Path | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 2 for lists that cannot be used."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--nodes", type=Path, required=True, help="CSV with the columns sn,cpu_milli,memory_mib,gpu")
    parser.add_argument(
        "--pods", type=Path, required=True, help="CSV with the columns name,cpu_milli,memory_mib,num_gpu,gpu_milli"
    )
    parser.add_argument("--shuffles", type=_at_least_one, default=10, help="orders of arrival; default 10")
    parser.add_argument("--seed", type=int, default=0, help="of the first order; default 0")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw allocation against arrivals")
    options = parser.parse_args(arguments)

    def measured(progress: Progress) -> Report:
        nodes, pods = read_nodes(options.nodes), read_pods(options.pods)
        return measure(Settings(nodes, pods, options.shuffles, options.seed, options.plot), progress)

    return run(NAME, options.output, measured, (ListError, ClusterError, PlotError))


def measure(settings: Settings, progress: Progress) -> Report:
    """Run all policies on the same arrivals and return the report."""
    nodes, pods = settings.nodes, settings.pods
    kinds = Kinds(pod.shape for pod in pods)
    gpus = sum(node.gpus for node in nodes)
    makers = policies(nodes, pods)
    curves: dict[str, list[list[float]]] = {name: [] for name in makers}
    seconds = dict.fromkeys(makers, 0.0)
    for shuffle in range(settings.shuffles):
        seed = settings.seed + shuffle
        order = arrivals(pods, gpus * WHOLE_MILLI * UNTIL_PERCENT / 100, Random(seed))
        for name, make in makers.items():
            began = time.perf_counter()
            curve = allocated_percent(nodes, order, make(), kinds, Random(seed))
            seconds[name] += time.perf_counter() - began
            curves[name].append(curve)
            progress.say(
                f"shuffle {shuffle + 1} of {settings.shuffles}, {name}: {curve[100]:.2f}% of the GPUs allocated"
                f" at 100%, {curve[UNTIL_PERCENT]:.2f}% at {UNTIL_PERCENT}%"
            )
    is_published = (len(nodes), gpus, len(pods)) == _PUBLISHED_LISTS
    rows = [_row(name, curves[name], seconds[name], is_published=is_published) for name in makers]
    if settings.plot:
        write_plot(curves, settings.plot)
    return report(NAME, rows, nodes=len(nodes), gpus=gpus, pods=len(pods), shuffles=settings.shuffles)


def _row(name: str, curves: Sequence[Sequence[float]], seconds: float, *, is_published: bool) -> Row:
    at_100, at_130 = ([curve[percent] for curve in curves] for percent in (100, UNTIL_PERCENT))
    published = PUBLISHED.get(name) if is_published else None
    return {
        "policy": name,
        "allocated_at_100_percent": round(fmean(at_100), 3),
        "allocated_at_130_percent": round(fmean(at_130), 3),
        "least_at_130_percent": round(min(at_130), 3),
        "published_at_100_percent": published and published[0],
        "published_at_130_percent": published and published[1],
        "seconds": round(seconds, 1),
        "errors": 0,
    }


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


if __name__ == "__main__":
    raise SystemExit(main())
