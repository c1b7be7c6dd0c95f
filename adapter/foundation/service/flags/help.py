"""The text that `--help` prints, at most 80 columns wide."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from adapter.foundation.service.flags.table import (
    BOOLEAN,
    CommandFlags,
    Flag,
    Ignored,
    Refused,
    Repeat,
    Works,
    variable_of,
)

COLUMNS: Final = 80
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
"""Joins what one line must hold: a flag and its value, and what is between quotes."""


def help_text(command: CommandFlags, *, all_flags: bool = False) -> str:
    """Return the help of a command: examples, and the flags by group with their types and defaults.

    `all_flags` adds the flags that have no effect and those that are refused, each with the reason.
    """
    shown = [flag for flag in command.flags if all_flags or isinstance(flag.state, Works)]
    names = "".join(f" {name}" for name in command.arguments)
    lines = [f"Usage: {command.program}{names} [flags]", "", *_wrap_lines(command.summary, "")]
    if command.examples:
        lines += ["", "Examples:", *(line for example in command.examples for line in _example(example))]
    for group in dict.fromkeys(flag.group for flag in shown):
        lines += ["", f"{group}:"]
        for flag in shown:
            if flag.group == group:
                lines += _flag_help(flag)
    return "\n".join([*lines, *_variables(command), *_left_out(len(command.flags) - len(shown))])


def _example(command_line: str) -> Iterator[str]:
    """Yield the lines of a command as a shell reads them; a long command continues after a backslash."""
    quoted = re.sub(r"'[^']*'|\"[^\"]*\"", lambda found: found[0].replace(" ", _NO_BREAK), command_line)
    together = re.sub(r"(?<= )(--?\S+) (?!-)", rf"\1{_NO_BREAK}", quoted)
    *lines, last = _wrap_lines(together, "  ", width=COLUMNS - len("    \\"))
    for number, line in enumerate([*(f"{line} \\" for line in lines), last]):
        yield ("    " if number else "") + line.replace(_NO_BREAK, " ")


def _flag_help(flag: Flag) -> list[str]:
    placeholder = f" {flag.kind.placeholder}" if flag.kind.placeholder else ""
    names = f"{', '.join(names_of(flag))}{placeholder}"
    return [*_wrap_lines(names, "  "), *_wrap_lines(notes_of(flag), "        ")]


def names_of(flag: Flag) -> tuple[str, ...]:
    """Return the names of a flag as they are typed, the short one first."""
    return (*([f"-{flag.short}"] if flag.short else []), f"--{flag.name}")


def notes_of(flag: Flag) -> str:
    """Return what a flag does and its default or that it is required, or why it has no effect or is refused."""
    notes = flag.help
    if isinstance(flag.state, Ignored):
        notes = f"Accepted, without effect: {flag.state.reason}"
    elif isinstance(flag.state, Refused):
        notes = f"Not supported: {flag.state.reason}"
    elif flag.required:
        notes = f"{notes} (required)"
    elif flag.default is not False and flag.default not in (None, (), ""):
        default = flag.default if isinstance(flag.default, tuple) else (flag.default,)
        notes = f"{notes} (default {', '.join(flag.kind.show(value) for value in default)})"
    return notes


def _variables(command: CommandFlags) -> Iterator[str]:
    before, example, after = variables_of(command)
    yield from ("", before, f"  {example}", after)


def variables_of(command: CommandFlags) -> tuple[str, str, str]:
    """Return three lines about setting flags by environment variables: a sentence, an example, and another sentence."""
    flag, value = _example_of_a_variable(command.flags)
    return (
        "Every flag can also be set by an environment variable:",
        f"{variable_of(flag)}={value} is --{flag.name}={value}",
        "The command line takes precedence.",
    )


def _example_of_a_variable(flags: Sequence[Flag]) -> tuple[Flag, str]:
    """Return a flag and a valid value: if possible, a flag with a default, which readers can check in the help."""
    single = [flag for flag in flags if isinstance(flag.state, Works) and flag.repeat is Repeat.LAST]
    with_default = [flag for flag in single if flag.kind is not BOOLEAN and flag.default not in (None, "")]
    flag = (with_default or single)[0]
    return flag, "true" if flag.kind is BOOLEAN else flag.kind.show(flag.default)


def _left_out(count: int) -> Iterator[str]:
    if count:
        flags = "1 flag that has no effect or is" if count == 1 else f"{count} flags that have no effect or are"
        yield from ("", *_wrap_lines(f"--help=all also lists {flags} not supported here, each with the reason.", ""))


def _wrap_lines(text: str, indent: str, width: int = COLUMNS) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
