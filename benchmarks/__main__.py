"""`make bench`: runs every benchmark, and writes its report as a table and as `benchmarks/out/NAME.json`."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.progress import Progress
from benchmarks.report import as_text, from_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OUT = Path(__file__).resolve().parent / "out"
CHECKOUT = OUT.parents[1]
LONGEST_SECONDS = 3600.0
"""The time after which a benchmark is ended."""
END_SECONDS = 20.0

BENCHMARKS: Mapping[str, Sequence[str]] = {
    "adapter_load": ("--hpas", "10000", "--seconds", "60"),
    "cluster_size": ("--nodes", "5000", "--pods", "150000", "--pending", "1000", "--gaps", "200"),
    "control_plane": ("--hpas", "200", "--seconds", "60"),
    "discovery_lists": ("--metrics", "5000", "--seconds", "60"),
    "extender": ("--names", "5000"),
    "forecast_tick": ("--series", "10000"),
    "forecast_traces": (),
    "gpu_fragmentation": (
        "--nodes",
        "../shared/traces/gpu/openb_node_list_all_node.csv",
        "--pods",
        "../shared/traces/gpu/openb_pod_list_default.csv",
    ),
    "node_policies": ("--days", "10"),
    "node_watcher": ("--nodes", "5000"),
    "plan_proof": (),
    "proportional_limits": ("--nodes", "5000", "--seconds", "30"),
    "readiness_memory": ("--sidecars", "10", "--seconds", "30"),
    "recommender_cluster": ("--nodes", "5000", "--pods", "50000", "--services", "50000", "--seconds", "30"),
    "replay": ("--days", "30", "--nodes", "500", "--policies", "0"),
    "series_discovery": ("--series", "200000", "--seconds", "30"),
    "shape_choices": (),
    "sizes": ("--workloads", "5000"),
    "sizes_backtest": ("--containers", "600"),
    "slow_readers": ("--readers", "300", "--heads", "1000", "--seconds", "30"),
    "start_cost": ("--starts", "5"),
    "image_sizes": (),
    "starts": ("--starts", "100"),
    "tenant_objects": ("--objects", "2000", "--beyond", "20000"),
    "tenants": (),
    "unauthenticated_clients": ("--nodes", "5000"),
}
"""The names of the benchmarks, with the options that the README's figures are measured with."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all benchmarks, or those that are named; return 0 if each of them succeeded."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; default: all")
    names = parser.parse_args(arguments).names or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}: there are {', '.join(BENCHMARKS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    progress = Progress("benchmarks")
    try:
        failed = [name for name in names if not _succeeds(name, progress)]
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    if failed:
        progress.say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _succeeds(name: str, progress: Progress) -> bool:
    progress.say(f"{name} {' '.join(BENCHMARKS[name])}".rstrip())
    command = [sys.executable, "-m", f"benchmarks.{name}", *BENCHMARKS[name], "-o", "json"]
    try:
        status, document = _output(command)
        found = from_json(document)
    except subprocess.TimeoutExpired:
        progress.say(f"{name} took longer than {LONGEST_SECONDS:.0f} s and was ended")
        return False
    except msgspec.DecodeError as error:
        progress.say(f"{name} ended with status {status} and without a report: {error}")
        return False
    OUT.mkdir(exist_ok=True)
    (OUT / f"{name}.json").write_bytes(document)
    print(as_text(found), flush=True)
    return status == 0


def _output(command: Sequence[str]) -> tuple[int, bytes]:
    """Return exit status and stdout; what the program writes to stderr is shown. Raises TimeoutExpired."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=CHECKOUT) as process:
        try:
            document, _ = process.communicate(timeout=LONGEST_SECONDS)
        except BaseException:
            # It ends its own processes if it has time to.
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    return process.returncode, document


if __name__ == "__main__":
    sys.exit(main())
