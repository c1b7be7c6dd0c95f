"""The cost of `tidewatch-recommender sizes`: `python -m benchmarks.sizes`.

The command itself queries a stand-in for Prometheus, for a quarter, half and all of the workloads, with 8 days of
5-minute history. `benchmarks.sizes_backtest` measures how well its sizes fit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from benchmarks.options import command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.size_answers import size_answers
from demo.machine.processes import ProcessFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME: Final = "sizes"
_COMMAND: Final = "from recommender.commands.main import main; main()"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--workloads", type=int, default=5_000)
    options = parser.parse_args(arguments)
    return run(NAME, options.output, lambda progress: measure(options.workloads, progress))


def measure(workloads: int, progress: Progress) -> Report:
    """Run the command for growing numbers of workloads."""
    rows = []
    for count in (workloads // 4, workloads // 2, workloads):
        progress.say(f"{count:,} workloads")
        rows.append(measured(count))
    return report(NAME, rows)


def measured(workloads: int) -> Row:
    """Run the command for this number of workloads. Raises ProcessFailedError."""
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


if __name__ == "__main__":
    sys.exit(main())
