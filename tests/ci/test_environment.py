"""The scripts of `.ci/`, on a checkout of their own, with odd paths and aborted runs; no network is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = '[project]\nname = "sample"\nversion = "{version}"\nscripts = {{sample = "sample:main"}}\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a project in a folder with a blank in its name; its environment has all packages of its (empty) lock."""
    folder = tmp_path / "tide watch"
    shutil.copytree(CHECKOUT / ".ci", folder / ".ci")
    (folder / "pyproject.toml").write_text(PROJECT.format(version="1.0"))
    (folder / "requirements-dev.lock").touch()
    (folder / "sample.py").write_text(
        "import importlib.metadata\ndef main():\n    print(importlib.metadata.version('sample'))\n"
    )
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    stamp = '{ pwd -P; sha256sum requirements-dev.lock; } | sha256sum | cut -d" " -f1 > .venv/.stamp-of-lock'
    subprocess.run(["bash", "-c", stamp], cwd=folder, check=True)
    return folder


def run(*command: str | Path, path: str | None = None) -> str:
    environ = {**os.environ, "PATH": path or os.environ["PATH"], "PYTHON": "/nowhere/python"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environ).stdout.strip()


def test_commands_run_from_a_folder_with_a_blank_in_its_name(checkout: Path) -> None:
    run(checkout / ".ci" / "python-environment")
    assert run(checkout / ".venv" / "bin" / "sample") == "1.0"


def test_a_new_version_replaces_the_old_one(checkout: Path) -> None:
    run(checkout / ".ci" / "python-environment")
    for version in ("2.0", "0.5"):
        (checkout / "pyproject.toml").write_text(PROJECT.format(version=version))
        run(checkout / ".ci" / "python-environment")
        assert run(checkout / ".venv" / "bin" / "sample") == version


def test_an_environment_that_was_moved_is_not_used(checkout: Path) -> None:
    moved = checkout.rename(checkout.with_name("elsewhere"))
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run(moved / ".ci" / "python-environment")
    assert "/nowhere/python is not on the PATH" in failed.value.stderr


def test_two_runs_at_the_same_time_wait_for_each_other(checkout: Path) -> None:
    (checkout / ".cache").mkdir()
    held = ["flock", str(checkout / ".cache" / "lock"), "sh", "-c", "echo held; cat"]
    with subprocess.Popen(held, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        waiting = subprocess.Popen([checkout / ".ci" / "python-environment"])
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.5)
        assert not (checkout / ".venv" / "bin" / "sample").exists()
        assert holder.stdin is not None
        holder.stdin.close()
        assert waiting.wait(30) == 0
    assert run(checkout / ".venv" / "bin" / "sample") == "1.0"


def program(folder: Path, name: str, *lines: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(["#!/bin/sh", *lines, ""]))
    (folder / name).chmod(0o755)


def test_a_package_whose_unpacking_was_cut_off_is_unpacked_anew(checkout: Path, tmp_path: Path) -> None:
    tools, unpacked = tmp_path / "tools", checkout / "unpacked"
    path = f"{tools}:{os.environ['PATH']}"
    program(tools, "apt-get", 'for last; do :; done; [ "$last" = update ] || touch "${last}_1_all.deb"')
    program(tools, "dpkg-deb", 'echo half > "$3/program"', "exit 1")
    with pytest.raises(subprocess.CalledProcessError):
        run(checkout / ".ci" / "debian-package", "some", unpacked, path=path)
    assert not unpacked.exists()
    program(tools, "dpkg-deb", 'echo whole > "$3/program"')
    run(checkout / ".ci" / "debian-package", "some", unpacked, path=path)
    assert (unpacked / "program").read_text() == "whole\n"
