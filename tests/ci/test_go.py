"""`.ci/go`, on a checkout of its own, with stand-ins for go and pip; no network is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.checkout import CHECKOUT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout in a folder with a blank in its name, with an environment whose pip writes a complete go."""
    folder = tmp_path / "tide watch"
    shutil.copytree(CHECKOUT / ".ci", folder / ".ci")
    shutil.copy(CHECKOUT / "requirements-go.lock", folder)
    program(folder / ".ci" / "python-environment", "exit 0")
    program(
        folder / ".venv" / "bin" / "python",
        '[ "$1" = -c ] && exit 0',
        "echo run >> pip-runs",
        'while [ "$1" != --target ]; do shift; done',
        'mkdir -p "$2/go/bin"; echo half > "$2/go/VERSION"',
        "[ -e pip-fails ] && exit 1",
        'touch "$2/go/bin/go"; chmod +x "$2/go/bin/go"',
    )
    return folder


def program(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def go_of(folder: Path, version: str) -> Path:
    program(folder / "gofmt", "exit 0")
    return program(folder / "go", f'[ "$GOTOOLCHAIN" = local ] && echo {version}')


def run(checkout: Path, *, path: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script; the first Go on the PATH is the one in the folder `path`, or one that is too old."""
    tools = path or go_of(checkout / "too old", "go1.19.8").parent
    environ = {name: value for name, value in os.environ.items() if name != "GO"}
    environ.update(variables, PATH=f"{tools}:{os.environ['PATH']}")
    return subprocess.run([checkout / ".ci" / "go"], capture_output=True, text=True, env=environ, check=False)


@pytest.mark.parametrize("version", ["go1.26", "go1.26.3", "go1.27rc1", "go1.100.0"])
def test_a_go_on_the_path_is_used(checkout: Path, tmp_path: Path, version: str) -> None:
    go_of(tmp_path / "tools", version)
    assert run(checkout, path=tmp_path / "tools").stdout.strip() == str(tmp_path / "tools")


def test_a_named_go_is_preferred_to_the_one_on_the_path(checkout: Path, tmp_path: Path) -> None:
    go_of(tmp_path / "tools", "go1.26")
    named = go_of(tmp_path / "other tools", "go1.27")
    assert run(checkout, path=tmp_path / "tools", GO=str(named)).stdout.strip() == str(tmp_path / "other tools")


@pytest.mark.parametrize(
    ("version", "message"),
    [("go1.25.9", "is go1.25.9, and Go 1.26 or later is needed"), ("rubbish", "is rubbish, and Go 1.26 or later")],
)
def test_a_named_go_that_is_too_old_is_an_error(checkout: Path, tmp_path: Path, version: str, message: str) -> None:
    done = run(checkout, GO=str(go_of(tmp_path / "tools", version)))
    assert done.returncode == 1
    assert message in done.stderr


def test_a_named_go_that_is_not_there_is_an_error(checkout: Path) -> None:
    assert "GO=/nowhere/go is not a program" in run(checkout, GO="/nowhere/go").stderr


def test_the_package_is_unpacked_once_where_the_go_on_the_path_is_too_old(checkout: Path) -> None:
    folders = {run(checkout).stdout.strip() for _ in range(2)}
    assert len(folders) == 1
    assert (Path(folders.pop()) / "go").exists()
    assert (checkout / "pip-runs").read_text() == "run\n"


def test_a_package_whose_unpacking_was_cut_off_is_unpacked_anew(checkout: Path) -> None:
    (checkout / "pip-fails").touch()
    failed = run(checkout)
    assert failed.returncode == 1
    assert "install Go 1.26 or later, or set GO" in failed.stderr
    (checkout / "pip-fails").unlink()
    assert (Path(run(checkout).stdout.strip()) / "go").exists()
