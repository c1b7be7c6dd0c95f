"""How well sizes fit the next day, beside those of others: `python -m benchmarks.sizes_backtest --traces DIR`.

The sizes for every day are calculated from the usage before it, and judged: ours (`sizes --percentile=auto`), those of
the Vertical Pod Autoscaler's recommender, and those of KRR's simple strategy. The others are also judged with their
requests scaled so that they reserve as much as ours, and ours scaled so that it reserves as much as they do. The usage
is generated (seasons, growth, spikes, leaks, nightly jobs), and recorded: loads of real sites, on containers as large
as those of a real cluster.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.forecast_traces import TRACES
from benchmarks.options import command_line
from benchmarks.recorded_traces import TraceMissingError
from benchmarks.recorded_usage import recorded_usage
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.size_policies import HISTORY_DAYS, JudgedDay, fit_of, judged_days
from benchmarks.sized_workloads import made_usage
from recommender.kinds.resources.backtest.policies import OURS, POLICIES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row
    from benchmarks.sized_workloads import MadeUsage

NAME: Final = "sizes_backtest"
_SEED: Final = 27


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--containers", type=int, default=600, help="of each kind of usage")
    parser.add_argument("--days", type=int, default=HISTORY_DAYS + 8, help=f"{HISTORY_DAYS} of them only as history")
    parser.add_argument("--seed", type=int, default=_SEED)
    parser.add_argument("--traces", type=Path, default=TRACES, help="the folder of the recorded traces")
    parser.add_argument("--made", action="store_true", help="judge made usage alone")
    options = parser.parse_args(arguments)
    if options.days <= HISTORY_DAYS:
        parser.error(f"--days {options.days} leaves no day to judge: write {HISTORY_DAYS + 1} or more")
    return run(NAME, options.output, lambda progress: measure(options, progress), (TraceMissingError,))


def measure(options: argparse.Namespace, progress: Progress) -> Report:
    """Judge each policy for both kinds of usage. Raises TraceMissingError."""
    shape = (options.containers, options.days, options.seed)
    rows = _rows("made", made_usage(*shape), progress)
    if not options.made:
        rows += _rows("recorded", recorded_usage(options.traces, *shape), progress)
    return report(NAME, rows)


def _rows(name: str, usage: MadeUsage, progress: Progress) -> list[Row]:
    progress.say(f"{len(usage.cores)} containers, {name} usage")
    judged = list(judged_days(usage))
    found: dict[str, list[JudgedDay]] = {"cpu": [cpu for cpu, _ in judged], "memory": [memory for _, memory in judged]}
    return [_judged(name, resource, those, policy) for resource, those in found.items() for policy in POLICIES]


def _judged(usage: str, resource: str, days: list[JudgedDay], policy: str) -> Row:
    own, equal, ours = (fit_of(days, *pair) for pair in ((policy, policy), (policy, OURS), (OURS, policy)))
    return {
        "usage": usage,
        "resource": resource,
        "policy": policy,
        "reserved_per_used": round(own.reserved / own.used, 3),
        "overrun_percent": round(own.overrun_percent, 4),
        "overrun_percent_reserving_as_ours": round(equal.overrun_percent, 4),
        "overrun_percent_of_ours_reserving_as_this": round(ours.overrun_percent, 4),
        "overrun_days_of_1000": round(own.overrun_days, 2),
        "overrun_days_of_1000_reserving_as_ours": round(equal.overrun_days, 2),
        "overrun_days_of_1000_of_ours_reserving_as_this": round(ours.overrun_days, 2),
        "errors": 0,
    }


if __name__ == "__main__":
    sys.exit(main())
