"""Runs every benchmark as a command: signals, errors, its report, its exit status."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from benchmarks.progress import Progress
from benchmarks.report import as_json, as_text
from demo.machine.files import raise_open_files_limit
from demo.machine.processes import ProcessFailedError
from demo.machine.prometheus import PrometheusMissingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.report import Report


def run(
    name: str,
    output: str,
    measure: Callable[[Progress], Report],
    expected: tuple[type[Exception], ...] = (),
    text: Callable[[Report], str] = as_text,
) -> int:
    """Measure, print the report as `output` says (`table` or `json`), and return the exit status.

    `text` makes the table.

    The status is 0 if every answer was right, 1 if one was wrong or missing, and 2 if nothing could be measured:
    because of an error that every benchmark may have, or one that is `expected` of this one.
    """
    cannot: tuple[type[Exception], ...] = (ProcessFailedError, PrometheusMissingError, *expected)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    raise_open_files_limit()
    try:
        found = measure(Progress(name))
    except KeyboardInterrupt:
        print(f"\n{name}: ended by Ctrl-C; nothing is left running", file=sys.stderr)
        return 128 + signal.SIGINT
    except cannot as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    print(as_json(found) if output == "json" else text(found))
    return 0 if all(row["errors"] == 0 for row in found.rows) else 1
