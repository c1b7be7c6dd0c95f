"""`make e2e`: builds what the suite needs, goes into a network of its own, and runs the tests there.

Building comes first, since that network has no way out. What is no option here is pytest's.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.e2e import toolchain
from tests.e2e.asking import SOURCE as ORACLE
from tests.e2e.controlplane import network, programs
from tests.e2e.controlplane.building import build

FOLDER: Final = Path(__file__).parent
CHECKOUT: Final = FOLDER.parents[1]


def main() -> None:
    """Run the suite in this process's place."""
    options, of_pytest = _parser().parse_known_args()
    try:
        _prepare(options)
    except (programs.ProgramsError, toolchain.ToolchainError) as e:
        sys.exit(f"e2e: {e}")
    place = network.enter()
    if place.why_loopback:
        sys.stderr.write(f"e2e: no namespaces here, tests with running pods will be left out: {place.why_loopback}\n")
    paths = [] if any(Path(argument.partition("::")[0]).exists() for argument in of_pytest) else [str(FOLDER)]
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *of_pytest, *paths])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e", description=__doc__)
    parser.add_argument("--kubernetes", metavar="1.N", help="a pinned version other than the newest")
    parser.add_argument("--prometheus-3", action="store_true", help="build the pinned Prometheus 3 and take it")
    parser.add_argument("--build-only", action="store_true", help="build what is needed, and run nothing")
    return parser


def _prepare(options: argparse.Namespace) -> None:
    """Build, and let the environment say which programs are meant."""
    if options.kubernetes:
        os.environ["E2E_KUBERNETES"] = options.kubernetes
    _put_on_the_path("go")
    if not os.environ.get("KUBEBUILDER_ASSETS"):
        build(programs.kubernetes(os.environ.get("E2E_KUBERNETES", programs.NEWEST)))
    if options.prometheus_3:
        os.environ["PROMETHEUS_BINARY"] = str(build(programs.PROMETHEUS) / "prometheus")
    _put_on_the_path("helm")
    # Fetches what the oracle is made of; its fixture builds it anew, from what is kept then.
    toolchain.build(ORACLE, Path(os.devnull))
    if options.build_only:
        sys.exit()


def _put_on_the_path(name: str) -> None:
    """Let `.ci/NAME` find or build a program, and put the folder that it prints on the PATH."""
    found = subprocess.run([CHECKOUT / ".ci" / name], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        raise toolchain.ToolchainError(f"{name} could not be had; the reason is above")
    os.environ["PATH"] = f"{found.stdout.strip()}:{os.environ['PATH']}"


if __name__ == "__main__":
    main()
