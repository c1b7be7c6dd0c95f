"""The command `schema` of both programs: it prints the JSON Schema of a configuration file, for editors and checks."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.documents.files import file_schema
from adapter.foundation.options.logs import QUIET_LOG_FLAGS, configure_quiet_logs_by
from adapter.foundation.service.flags.parsing import exit_for_usage, flags_or_exit
from adapter.foundation.service.flags.program import ProgramCommand
from adapter.foundation.service.flags.table import PATH, CommandFlags, Flag, one_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.documents.sections import Section

_OUT: Final = Flag("out", PATH, "File to write; standard output without it.", default=None)


@dataclass(frozen=True, slots=True)
class DescribedFile:
    """A file that users write, with its title."""

    title: str
    section: Section[Any]


def schema_command(program: str, files: Mapping[str, DescribedFile]) -> ProgramCommand:
    """Return the command for these files by name. The first file is the default; a single file needs no flag."""
    names = tuple(files)
    which = Flag("of", one_of(*names), "The file whose schema is printed.", default=names[0])
    plain = f"{program} schema --of {names[-1]}" if len(names) > 1 else f"{program} schema"
    command = CommandFlags(
        program=f"{program} schema",
        summary=f"Prints the JSON Schema of the {' or the '.join(file.title for file in files.values())}, by which "
        "editors complete and check keys.",
        examples=(plain, f"{program} schema --out schema.json"),
        flags=(*((which,) if len(names) > 1 else ()), _OUT, *QUIET_LOG_FLAGS),
    )

    def run(arguments: Sequence[str]) -> None:
        values = flags_or_exit(command, arguments)
        configure_quiet_logs_by(values)
        file = files[values.text("of") if len(names) > 1 else names[0]]
        path, text = values.path("out"), schema_text(file.title, file.section)
        if path is None:
            sys.stdout.write(text)
            return
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            exit_for_usage(command.program, f"{path}: {error.strerror}: check that its folder exists and is writable")

    return ProgramCommand(command, run)


def schema_text(title: str, section: Section[Any]) -> str:
    """Return the schema as a file."""
    return json.dumps(file_schema(title, section), indent=2, ensure_ascii=False) + "\n"
