"""`tidewatch-recommender`: finds the command that was asked for and runs it."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from adapter.documents.tree import nearest
from adapter.options.version import program_version
from adapter.service.flags.parsing import exit_for_usage
from adapter.service.runtime.printing import run_until_nobody_reads
from recommender.commands.program import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SUMMARIES = {
    "run": "decide repeatedly, publish the recommendations, and scale targets that may be scaled",
    "recommend": "calculate each recommendation once, show how, and write nothing",
    "backtest": "replay recorded load, and compare forecasts with plain headroom at equal cost",
    "doctor": "check an installation for common faults, and say how to fix each",
    "proportional": "replace cluster-proportional-autoscaler, with its command line and its rights",
}

USAGE = f"""\
Usage: {PROGRAM} COMMAND [flags]

How big a Kubernetes cluster and its workloads should be, and why.

Commands:
{chr(10).join(f"  {name:<12} {summary}" for name, summary in SUMMARIES.items())}

`{PROGRAM} COMMAND --help` lists the flags of a command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; leaves by SystemExit with the exit status."""
    run_until_nobody_reads(partial(_run, sys.argv[1:] if arguments is None else arguments))


def _run(arguments: Sequence[str]) -> None:
    name, *rest = arguments or ["--help"]
    if name in {"--help", "-h", "help"}:
        print(USAGE)  # noqa: T201 - what was asked for
    elif name == "--version":
        print(f"{PROGRAM} {program_version()}")  # noqa: T201 - likewise
    elif name in SUMMARIES:
        _command(name)(rest)
    else:
        meant = nearest(name, SUMMARIES)
        hint = f"did you mean {meant}?" if meant else f"see {PROGRAM} --help"
        exit_for_usage(PROGRAM, f"there is no command {name!r}: {hint}")


def _command(name: str) -> Callable[[Sequence[str]], None]:
    """Return the function behind a command; only the one that runs is imported."""
    if name == "run":
        from recommender.commands.run.command import run  # noqa: PLC0415 - see above

        return run
    if name == "backtest":
        from recommender.commands.backtest import backtest  # noqa: PLC0415 - see above

        return backtest
    if name == "doctor":
        from recommender.commands.doctor.command import doctor  # noqa: PLC0415 - see above

        return doctor
    if name == "proportional":
        from recommender.commands.proportional.command import proportional  # noqa: PLC0415 - see above

        return proportional
    if name == "recommend":
        from recommender.commands.recommend.command import recommend  # noqa: PLC0415 - see above

        return recommend
    raise AssertionError(name)
