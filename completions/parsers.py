"""A program's commands and flags as a parser of argparse, which is what shtab reads. Nothing is parsed with it."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

import shtab

from adapter.foundation.service.flags.table import BOOLEAN, PATH, Repeat, Works

if TYPE_CHECKING:
    from adapter.foundation.service.flags.program import Program
    from adapter.foundation.service.flags.table import CommandFlags, Flag


def parser_of(program: Program) -> argparse.ArgumentParser:
    """Return the commands of a program with the flags that have an effect."""
    parser = argparse.ArgumentParser(prog=program.name, description=program.summary)
    _add_version(parser)
    commands = parser.add_subparsers()
    for name, summary in program.commands.items():
        _add_flags(commands.add_parser(name, help=summary, description=summary), program.load(name).flags)
    return parser


def first_sentence(text: str) -> str:
    """Return the first sentence of a help, without its full stop."""
    return re.split(r"\. (?=[A-Z])", text, maxsplit=1)[0].removesuffix(".")


def _add_flags(parser: argparse.ArgumentParser, command: CommandFlags) -> None:
    _add_version(parser)
    for flag in command.flags:
        if isinstance(flag.state, Works):
            _add_flag(parser, flag)
    for argument in command.arguments:
        parser.add_argument(argument)


def _add_flag(parser: argparse.ArgumentParser, flag: Flag) -> None:
    names = [*([f"-{flag.short}"] if flag.short else []), f"--{flag.name}"]
    # argparse fills in what stands behind a percent sign.
    help_text = first_sentence(flag.help).replace("%", "%%")
    if flag.kind is BOOLEAN:
        parser.add_argument(*names, action="store_true", help=help_text)
        return
    action = parser.add_argument(
        *names,
        action="store" if flag.repeat is Repeat.LAST else "append",
        choices=flag.kind.choices or None,
        help=help_text,
    )
    if flag.kind is PATH:
        # Where shtab looks for it; argparse declares no such attribute.
        action.complete = shtab.FILE  # type: ignore[attr-defined]


def _add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", action="version", help="show the program's version and exit")
