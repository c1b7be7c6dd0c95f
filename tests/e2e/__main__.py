"""`make e2e` builds what the suite needs, and runs the tests in workers that each have a network of their own.

Building comes first, since those networks cannot reach others. Arguments that are not options of this program are
pytest's.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.e2e import toolchain, worker
from tests.e2e.controlplane import network, programs
from tests.e2e.controlplane.building import build
from tests.e2e.durations import RECORD
from tests.e2e.judge.judging import SOURCE as JUDGE
from tests.e2e.metrics_apis.thanos import WITH_THANOS
from tests.e2e.oracle.asking import SOURCE as ORACLE
from tests.e2e.support import browser

FOLDER: Final = Path(__file__).parent
CHECKOUT: Final = FOLDER.parents[1]
WORKERS: Final = 2
CACHE: Final = ".cache/pytest-e2e"
"""The cache of the tests that failed last; `make test` has another one, and `make again` repeats either's tests."""


def main() -> None:
    """Replace this process with the suite."""
    options, of_pytest = _parser().parse_known_args()
    try:
        _prepare(options)
    except (programs.ProgramsError, toolchain.ToolchainError) as e:
        sys.exit(f"e2e: {e}")
    paths = [path for argument in of_pytest if (path := Path(argument.partition("::")[0])).exists()]
    alone = options.workers == 1 or _is_one_module(paths)
    if why := network.enter().why_loopback if alone else network.obstacle():
        sys.stderr.write(f"e2e: no namespaces here, tests with running pods will be left out: {why}\n")
    cache = ["-o", f"cache_dir={CACHE}"]
    command = [sys.executable, "-m", "pytest", *cache, *([] if alone else _shared_by(options.workers)), *of_pytest]
    os.execv(sys.executable, [*command, *([] if paths else [str(FOLDER)])])


def _is_one_module(paths: list[Path]) -> bool:
    return len(set(paths)) == 1 and paths[0].is_file()


def _shared_by(workers: int) -> list[str]:
    """Return pytest-xdist's options: workers that first enter a network, and then take whole modules in their order."""
    python = shlex.join([sys.executable, "-m", worker.MODULE])
    return [f"--tx={workers}*popen//python={python}", "--dist=loadfile", "--no-loadscope-reorder"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e", description=__doc__)
    parser.add_argument("--kubernetes", metavar="1.N", help="a pinned version other than the newest")
    parser.add_argument("--prometheus-3", action="store_true", help="build the pinned Prometheus 3 and take it")
    parser.add_argument(
        "--thanos", action="store_true", help="build the pinned Thanos, and run the module that needs it"
    )
    parser.add_argument("--build-only", action="store_true", help="build what is needed, and run nothing")
    parser.add_argument(
        "--workers",
        type=int,
        choices=range(1, 9),
        default=WORKERS,
        metavar="N",
        help="how many clusters run at the same time, each with its share of the modules; 1, or a single module, runs"
        f" in this process, as --pdb and -s need it (default: {WORKERS})",
    )
    parser.add_argument(
        "--record-durations", action="store_true", help="write how long each module took to tests/e2e/durations.json"
    )
    return parser


def _prepare(options: argparse.Namespace) -> None:
    """Build the programs, and set the environment variables that name them."""
    if options.kubernetes:
        os.environ["E2E_KUBERNETES"] = options.kubernetes
    if options.record_durations:
        os.environ[RECORD] = "1"
    _put_on_the_path("go")
    if not os.environ.get("KUBEBUILDER_ASSETS"):
        build(programs.kubernetes(os.environ.get("E2E_KUBERNETES", programs.NEWEST)))
    build(programs.DESCHEDULER)
    if options.prometheus_3:
        os.environ["PROMETHEUS_BINARY"] = str(build(programs.PROMETHEUS) / "prometheus")
    if options.thanos:
        os.environ[WITH_THANOS] = "1"
        build(programs.THANOS)
    _put_on_the_path("helm")
    browser.find()
    # Fetches what these are made of; their fixtures build them anew, from what is kept then.
    toolchain.build(ORACLE, Path(os.devnull))
    toolchain.build(JUDGE, Path(os.devnull))
    if options.build_only:
        sys.exit()


def _put_on_the_path(name: str) -> None:
    """Let `.ci/NAME` find or build a program, and put the folder that the script prints on the PATH."""
    found = subprocess.run([CHECKOUT / ".ci" / name], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        raise toolchain.ToolchainError(f"{name} could not be had; the reason is above")
    os.environ["PATH"] = f"{found.stdout.strip()}:{os.environ['PATH']}"


if __name__ == "__main__":
    main()
