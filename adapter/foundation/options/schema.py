"""The command `schema` of both programs: it prints the JSON Schema of a configuration file, for editors and checks."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.documents.files import file_schema
from adapter.foundation.options.logs import QUIET_LOG_FLAGS, configure_quiet_logs_by
from adapter.foundation.options.version import program_version
from adapter.foundation.service.flags.parsing import exit_for_usage, flags_or_exit
from adapter.foundation.service.flags.program import ProgramCommand
from adapter.foundation.service.flags.table import PATH, CommandFlags, Flag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.documents.sections import Section

_OUT: Final = Flag(name="out", kind=PATH, default=None, help="File to write; standard output without it.")


def schema_command(program: str, title: str, section: Section[Any]) -> ProgramCommand:
    """Return the command for the file that the section describes."""
    command = CommandFlags(
        program=f"{program} schema",
        version=program_version(),
        summary=f"Prints the JSON Schema of the {title}, by which editors complete and check keys.",
        examples=(f"{program} schema", f"{program} schema --out schema.json"),
        flags=(_OUT, *QUIET_LOG_FLAGS),
    )

    def run(arguments: Sequence[str]) -> None:
        values = flags_or_exit(command, arguments, os.environ)
        configure_quiet_logs_by(values)
        path, text = values.path("out"), schema_text(title, section)
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
