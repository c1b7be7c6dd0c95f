"""What `tidewatch-recommender sizes` takes, and how its sizes fit: `python -m benchmarks.sizes [--backtest]`.

The command itself runs beside a stand-in for Prometheus, for a quarter, half and all of the workloads, with 8 days of
5-minute history. With `--backtest`, made usage with daily seasons, growth, spikes and leaks is sized every day, and
judged by the day that follows: ours, the percentiles of the Vertical Pod Autoscaler, and KRR's simple strategy, also
with the requests of the others scaled so that they reserve as much as ours.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from benchmarks.report import report
from benchmarks.running import run
from benchmarks.size_answers import size_answers
from benchmarks.size_policies import OURS, POLICIES, JudgedDay, fit_of, judged_days
from benchmarks.sized_workloads import made_usage
from demo.machine.processes import ProcessFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME: Final = "sizes"
_COMMAND: Final = "from recommender.commands.main import main; main()"
_SEED: Final = 27
_UNITS: Final = {"cpu": 1.0, "memory": 2.0**30}
"""Cores and GiB."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{NAME}", description=__doc__.partition("\n")[0])
    parser.add_argument("--workloads", type=int, default=5_000)
    parser.add_argument("--backtest", action="store_true", help="judge sizes on made usage instead")
    parser.add_argument("--containers", type=int, default=600, help="of the backtest")
    parser.add_argument("--days", type=int, default=16, help="of the backtest, 8 of them only as history")
    parser.add_argument("--seed", type=int, default=_SEED)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    if options.backtest:
        return run(
            NAME, options.output, lambda progress: backtest(options.containers, options.days, options.seed, progress)
        )
    return run(NAME, options.output, lambda progress: measure(options.workloads, progress))


def measure(workloads: int, progress: Progress) -> Report:
    """Run the command for growing numbers of workloads."""
    rows = []
    for count in (workloads // 4, workloads // 2, workloads):
        progress.say(f"{count:,} workloads")
        rows.append(measured(count))
    return report(NAME, rows)


def measured(workloads: int) -> Row:
    """Run the command for so many workloads. Raises ProcessFailedError."""
    with size_answers(workloads) as url:
        began = time.monotonic()
        command = [sys.executable, "-c", _COMMAND, "sizes", "--prometheus-url", url, "-o", "json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            output = process.stdout.read() if process.stdout else b""
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
    if process.returncode != 0:
        raise ProcessFailedError(f"sizes ended with status {process.returncode}")
    items = json.loads(output)["items"]
    right = sum(item["status"] == "ok" and item["kind"] == "Deployment" for item in items)
    return {
        "workloads": workloads,
        "seconds": round(seconds, 1),
        "ms_per_workload": round(1000 * seconds / workloads, 2),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "rss_mib": round(usage.ru_maxrss / 1024, 1),
        "errors": workloads - right,
    }


def backtest(containers: int, days: int, seed: int, progress: Progress) -> Report:
    """Judge each policy, as it is and with the reservation of ours."""
    progress.say(f"{containers} containers, {days} days, seed {seed}")
    judged = list(judged_days(made_usage(containers, days, seed)))
    found: dict[str, list[JudgedDay]] = {"cpu": [cpu for cpu, _ in judged], "memory": [memory for _, memory in judged]}
    return report(
        f"{NAME} --backtest",
        [_judged(resource, those, policy) for resource, those in found.items() for policy in POLICIES],
    )


def _judged(resource: str, days: list[JudgedDay], policy: str) -> Row:
    own, equal, theirs = (fit_of(days, *pair) for pair in ((policy, policy), (policy, OURS), (OURS, policy)))
    return {
        "resource": resource,
        "policy": policy,
        "reserved": round(own.reserved / _UNITS[resource], 1),
        "reserved_per_used": round(own.reserved / own.used, 3),
        "overrun_percent": round(own.overrun_percent, 4),
        "overrun_percent_reserving_as_ours": round(equal.overrun_percent, 4),
        "ours_reserving_as_this": round(theirs.overrun_percent, 4),
        "errors": 0,
    }


if __name__ == "__main__":
    sys.exit(main())
