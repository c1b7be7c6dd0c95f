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
def test_a_program_whose_output_nobody_reads_ends_without_a_word(command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    module, *arguments = command
    program = f"from {module} import main; main({arguments!r})"
    with os.fdopen(writing, "w") as stdout:
        ran = subprocess.run(
            [sys.executable, "-c", program], stdout=stdout, stderr=subprocess.PIPE, timeout=PATIENCE, check=False
        )
    assert (ran.returncode, ran.stderr) == (141, b"")
