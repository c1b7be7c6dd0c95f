"""Programs whose output is not read to its end, as with `| head -1`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.checkout import CHECKOUT

RULES = CHECKOUT / "rules" / "adapter"
PATIENCE = 60.0


@pytest.mark.parametrize(
    "command",
    [
        ["adapter.commands.main"],
        ["adapter.commands.main", "--version"],
        ["adapter.commands.main", "serve", "--help"],
        ["adapter.commands.main", "explain", "--help"],
        ["adapter.commands.main", "check", "--help"],
        ["adapter.commands.main", "check", f"--config={RULES}"],
        ["adapter.commands.main", "doctor", "--help"],
        ["recommender.commands.main", "--help"],
    ],
    ids=" ".join,
)
def test_a_program_whose_output_is_not_read_ends_without_an_error_message(command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    module, *arguments = command
    program = f"from {module} import main; main({arguments!r})"
    with os.fdopen(writing, "w") as stdout:
        ran = subprocess.run(
            [sys.executable, "-c", program], stdout=stdout, stderr=subprocess.PIPE, timeout=PATIENCE, check=False
        )
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_characters_that_the_encoding_of_stdout_lacks_are_escaped() -> None:
    module = "adapter.foundation.service.runtime.printing"
    program = f"from {module} import run_until_nobody_reads as run; run('p', lambda: print('a\u2026\xf6'))"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"a\\u2026\\xf6\n", b"")
