"""`.ci/run`, with a stand-in for make that fails where the test wants it to."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

TARGETS = ["lint", "test", "e2e"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout whose make records its arguments, and fails for the target in the file `fails`."""
    folder = tmp_path / "tide watch"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(CHECKOUT / ".ci" / "run", folder / ".ci")
    make = tmp_path / "bin" / "make"
    make.parent.mkdir()
    make.write_text('#!/bin/sh\necho "$@" >> made\n[ "$1" != "$(cat fails)" ]\n')
    make.chmod(0o755)
    return folder


@pytest.mark.parametrize("fails", ["", *TARGETS])
def test_each_target_is_made_once_and_the_first_failure_ends_the_run(checkout: Path, fails: str) -> None:
    (checkout / "fails").write_text(fails)
    path = f"{checkout.parent / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run([checkout / ".ci" / "run"], env={**os.environ, "PATH": path}, check=False)

    made = (checkout / "made").read_text().splitlines()
    assert made == (TARGETS[: TARGETS.index(fails) + 1] if fails else TARGETS)
    assert (done.returncode == 0) == (not fails)
