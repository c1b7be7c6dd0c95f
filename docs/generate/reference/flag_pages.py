"""The flags of each command, from the tables that parse them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from adapter.commands.table import COMMANDS as ADAPTER
from adapter.foundation.service.flags.table import CommandFlags, Flag, Ignored, Refused, Works
from docs.generate.reference.markdown import code, plain, table
from recommender.commands.table import COMMANDS as RECOMMENDER
from recommender.kubectl.table import COMMANDS as PLUGIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adapter.foundation.service.flags.program import Program

PROGRAMS: Final[tuple[Program, ...]] = (ADAPTER, RECOMMENDER, PLUGIN)
_INTRODUCTION: Final = """# Flags of `{program}`

Every command with its flags, types and defaults. {summary} `{program} COMMAND --help` prints the same.

An environment variable sets each flag too: `TIDEWATCH_FLAG_` and the name in capitals, with `_` for `-`. The command
line takes precedence. `make docs` writes this page from the tables that parse the command lines.
"""


def flags_page(program: Program) -> str:
    """Return the page of a program: a section for each command."""
    sections = (_section(program.load(name).flags) for name in sorted(program.commands))
    return "\n".join([_INTRODUCTION.format(program=program.name, summary=program.summary), *sections])


def _section(command: CommandFlags) -> str:
    arguments = "".join(f" {name}" for name in command.arguments)
    groups = dict.fromkeys(flag.group for flag in command.flags)
    return "\n".join([f"## `{command.program}{arguments}`", "", command.summary, "", *_groups(command, list(groups))])


def _groups(command: CommandFlags, groups: list[str]) -> Iterator[str]:
    """Yield a table for each group; if there is only one group, only its table."""
    for group in groups:
        if len(groups) > 1:
            yield f"**{group}**\n"
        yield table(("flag", "default", "meaning"), list(_rows(flag for flag in command.flags if flag.group == group)))


def _rows(flags: Iterable[Flag]) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each flag; neighbours that have no effect, or are refused, for the same reason share a row."""
    for _, members in groupby(flags, lambda flag: flag if isinstance(flag.state, Works) else flag.state):
        row = list(members)
        yield ", ".join(map(_names, row)), _default(row[0]), _meaning(row[0])


def _names(flag: Flag) -> str:
    short = f"-{flag.short}, " if flag.short else ""
    value = f" {flag.kind.placeholder}" if flag.kind.placeholder else ""
    return code(f"{short}--{flag.name}{value}")


def _default(flag: Flag) -> str:
    if flag.required:
        return "required"
    if flag.default in (None, (), ""):
        return ""
    values = flag.default if isinstance(flag.default, tuple) else (flag.default,)
    return code(",".join(flag.kind.show(value) for value in values))


def _meaning(flag: Flag) -> str:
    if isinstance(flag.state, Ignored):
        return f"Accepted, without effect: {plain(flag.state.reason)}"
    if isinstance(flag.state, Refused):
        return f"Not supported: {plain(flag.state.reason)}"
    return plain(flag.help)
