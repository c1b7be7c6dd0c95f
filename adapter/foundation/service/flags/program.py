"""A program with several commands: finds the one that was requested and runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from adapter.foundation.documents.tree import did_you_mean
from adapter.foundation.service.flags.parsing import exit_for_usage
from adapter.foundation.service.flags.table import ENVIRONMENT_PREFIX, CommandFlags, Flag, variable_of
from adapter.foundation.service.runtime.garbage_collector import collect_rarely
from adapter.foundation.service.runtime.printing import run_until_nobody_reads
from adapter.foundation.service.runtime.signals import raise_at_interrupt, run_until_interrupted
from adapter.foundation.service.version import program_version


@dataclass(frozen=True, slots=True)
class ProgramCommand:
    """A command: its flags, and what runs it."""

    flags: CommandFlags
    run: Callable[[Sequence[str]], None]
    """Takes the arguments after the command's name; raises SystemExit if the exit status is not 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The commands of a program."""

    name: str
    summary: str
    commands: Mapping[str, str]
    """One line about each command, by name."""
    load: Callable[[str], ProgramCommand]
    """Imports a command by name, so that only the command that runs is imported."""


def run_command_line(program: Program, arguments: Sequence[str] | None) -> None:
    """Run a command line (by default that of the process); raises SystemExit if the exit status is not 0."""
    run = partial(run_program, program, sys.argv[1:] if arguments is None else arguments, os.environ)
    run_until_interrupted(program.name, partial(run_until_nobody_reads, program.name, run))


def run_program(program: Program, arguments: Sequence[str], environment: MutableMapping[str, str]) -> None:
    """Run a command line; raises SystemExit if the exit status is not 0.

    Variables that set only flags of the program's other commands are removed from the environment, so that another
    command can be run by hand in the pod of one command. Commands whose packages are not installed do not count.
    """
    name, *rest = arguments or ["--help"]
    if name in {"--help", "-h", "help"}:
        print(usage(program))  # noqa: T201 - the output of the command
    elif name == "--version":
        print(f"{program.name} {program_version()}")  # noqa: T201 - likewise
    elif name in program.commands:
        collect_rarely()
        command = _load_command(program, name)
        for variable in _variables_of_others(program, command.flags, environment):
            del environment[variable]
        raise_at_interrupt(program.name)
        command.run(rest)
    else:
        hint = did_you_mean(name, program.commands, f"see {program.name} --help")
        exit_for_usage(program.name, f"there is no command {name!r}: {hint}")


def _load_command(program: Program, name: str) -> ProgramCommand:
    """Return a command. Ends with status 2 if this installation lacks a package that it needs.

    An image or environment for one part of Tidewatch contains only the packages of that part.
    """
    try:
        return program.load(name)
    except ModuleNotFoundError as error:
        exit_for_missing_package(program.name, name, str(error.name).partition(".")[0])


def exit_for_missing_package(program: str, command: str, package: str) -> NoReturn:
    """End with status 2 and the reason on stderr."""
    exit_for_usage(
        program,
        f"{command} needs the Python package {package}, which this installation does not have: "
        "use the image with all parts, or run pip install tidewatch",
    )


def usage(program: Program) -> str:
    """Return what the program's own `--help` prints."""
    width = max(map(len, program.commands))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in program.commands.items()]
    return "\n".join(
        [
            f"Usage: {program.name} COMMAND [flags]",
            "",
            program.summary,
            "",
            "Commands:",
            *lines,
            "",
            f"`{program.name} COMMAND --help` lists the flags of a command.",
        ]
    )


def _variables_of_others(program: Program, flags: CommandFlags, environment: Mapping[str, str]) -> list[str]:
    known = {variable_of(flag) for flag in flags.flags}
    unknown = [name for name in environment if name.startswith(ENVIRONMENT_PREFIX) and name not in known]
    if not unknown:
        return []
    others = {variable_of(flag) for name in program.commands for flag in _flags_if_installed(program, name)}
    return [name for name in unknown if name in others]


def _flags_if_installed(program: Program, name: str) -> Sequence[Flag]:
    """Return the flags of a command; none if this installation lacks a package that the command needs."""
    try:
        return program.load(name).flags.flags
    except ModuleNotFoundError:
        return ()
