"""Programs whose standard streams are closed or full end without a traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PATIENCE = 60.0


def _run(arguments: str, redirection: str) -> subprocess.CompletedProcess[str]:
    program = f"from adapter.commands.main import main; main({arguments.split()!r})"
    shell = ["sh", "-c", f'exec "$0" -c "$1" {redirection}', sys.executable, program]
    # Unbuffered streams have nothing left to write when the interpreter exits, which is where it fails.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(shell, capture_output=True, text=True, timeout=PATIENCE, check=False, env=buffered)


@pytest.mark.parametrize("arguments", ["--version", "schema", "serve --help"])
def test_a_full_disk_is_one_line_and_status_2(arguments: str) -> None:
    ran = _run(arguments, ">/dev/full")
    message = (
        "tidewatch-adapter: the output cannot be written: No space left on device: make room, or write it elsewhere\n"
    )
    assert (ran.returncode, ran.stderr) == (2, message)


@pytest.mark.parametrize(
    ("arguments", "redirection", "status"),
    [
        ("--version", ">&-", 0),
        ("serve --help", ">&- 2>&-", 0),
        ("check --help", "<&- >&- 2>&-", 0),
        ("nosuchcommand", "2>&-", 2),
        ("schema", ">/dev/full 2>/dev/full", 2),
    ],
)
def test_a_program_whose_streams_are_closed_ends_without_a_traceback(
    arguments: str, redirection: str, status: int
) -> None:
    ran = _run(arguments, redirection)
    assert (ran.returncode, ran.stdout, ran.stderr) == (status, "", "")
