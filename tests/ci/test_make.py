"""The targets of the Makefile, as `make` itself reads them."""

from __future__ import annotations

import re
import subprocess
from typing import Final

import pytest

from tests.support.checkout import CHECKOUT

SIZES: Final = re.findall(r"^e2e-scale: export (\w+) \?= (\d+)$", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)


def made(*arguments: str) -> str:
    """Return what `make` prints with these arguments."""
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout


def test_help_names_each_target_for_users() -> None:
    (targets,) = re.findall(r"^\.PHONY: (.*)$", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)

    named = {line.split()[0] for line in made("help").splitlines()}

    assert named == set(targets.split()) - {"environment"}


@pytest.mark.parametrize(("variable", "size"), SIZES)
def test_every_size_of_the_large_tests_is_read_by_a_module_that_runs(variable: str, size: str) -> None:
    modules = re.findall(r"tests/e2e/\S+\.py", made("--dry-run", "e2e-scale"))

    defaults = [
        float(default)
        for module in modules
        for default in re.findall(rf'environ\.get\("{variable}", "(\d+)"\)', (CHECKOUT / module).read_text())
    ]

    assert defaults
    assert max(defaults) < float(size)
