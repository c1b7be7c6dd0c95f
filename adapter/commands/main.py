"""`tidewatch-adapter`: finds the command that was asked for and runs it."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from adapter.commands.program import PROGRAM
from adapter.documents.tree import nearest
from adapter.options.version import program_version
from adapter.service.flags.parsing import exit_for_usage
from adapter.service.runtime.printing import run_until_nobody_reads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SUMMARIES = {
    "serve": "serve the metrics APIs from Prometheus",
    "explain": "explain why a metric has, or lacks, a value",
    "check": "report errors in rule files, and what the rules would serve",
    "doctor": "check an installation for common faults",
    "nodes": "serve the load of nodes to schedulers and the descheduler",
    "readiness": "answer the readiness probe of a pod with a limit of connections",
}

USAGE = f"""\
Usage: {PROGRAM} COMMAND [flags]

Prometheus metrics for the Kubernetes metrics APIs.

Commands:
{chr(10).join(f"  {name:<10} {summary}" for name, summary in SUMMARIES.items())}

`{PROGRAM} COMMAND --help` lists the flags of a command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; raises SystemExit if the exit status is not 0."""
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
    if name == "serve":
        from adapter.commands.serve.command import serve  # noqa: PLC0415 - see above

        return serve
    if name == "explain":
        from adapter.commands.explain.command import explain  # noqa: PLC0415 - see above

        return explain
    if name == "check":
        from adapter.commands.check.command import check  # noqa: PLC0415 - see above

        return check
    if name == "doctor":
        from adapter.commands.doctor.command import doctor  # noqa: PLC0415 - see above

        return doctor
    if name == "nodes":
        from adapter.commands.nodes.command import nodes  # noqa: PLC0415 - see above

        return nodes
    if name == "readiness":
        from adapter.commands.readiness import readiness  # noqa: PLC0415 - see above

        return readiness
    raise AssertionError(name)
