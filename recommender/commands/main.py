"""`tidewatch-recommender`: tells its version, and which of its commands there are.

The recommenders are not there yet, so neither are commands. The package holds what they will stand on: the arithmetic
of the HPA (`recommender.hpa`).
"""

from __future__ import annotations

import sys
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from adapter.service.flags.parsing import exit_for_usage
from adapter.service.runtime.printing import run_until_nobody_reads

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "tidewatch-recommender"
NO_COMMANDS = "there are no commands yet: this version holds the HPA's arithmetic as a library, recommender.hpa"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; leaves by SystemExit where there is a status to tell."""
    run_until_nobody_reads(partial(_run, sys.argv[1:] if arguments is None else arguments))


def _run(arguments: Sequence[str]) -> None:
    first = next(iter(arguments), "--help")
    if first == "--version":
        print(f"{PROGRAM} {version('tidewatch')}")  # noqa: T201 - what was asked for
    elif first in {"--help", "-h"}:
        print(f"Usage: {PROGRAM} --version | --help\n\n{NO_COMMANDS.capitalize()}.")  # noqa: T201 - likewise
    else:
        exit_for_usage(PROGRAM, f"{first!r}: {NO_COMMANDS}")
