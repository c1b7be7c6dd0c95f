"""`.ci/chromium`, on a checkout of its own, with a stand-in for the packages; no network is needed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.checkout import CHECKOUT

TOOLS = ("bash", "chmod", "cat", "dirname", "find", "flock", "mkdir", "mv", "paste", "sh", "sort", "touch")


def tools_without_a_browser(folder: Path) -> Path:
    """Return a folder with only the programs that the script needs, since the machine itself may have a Chromium."""
    tools = folder / "tools"
    tools.mkdir()
    for name in TOOLS:
        if path := shutil.which(name):
            (tools / name).symlink_to(path)
    return tools


@pytest.mark.parametrize(
    "folders",
    [("usr/lib/x",), ("lib/x",), ("usr/lib/x", "lib/y")],
    ids=["usr alone", "lib alone", "both"],
)
def test_the_browser_finds_its_libraries_wherever_the_packages_put_them(
    tmp_path: Path, folders: tuple[str, ...]
) -> None:
    checkout, cache = tmp_path / "checkout", tmp_path / "cache"
    (checkout / ".ci").mkdir(parents=True)
    shutil.copy(CHECKOUT / ".ci" / "chromium", checkout / ".ci")
    shutil.copy(CHECKOUT / ".ci" / "one-at-a-time", checkout / ".ci")
    packages = checkout / ".ci" / "debian-package"
    made = "; ".join(f'mkdir -p "$2/{folder}"; touch "$2/{folder}/a.so.1"' for folder in folders)
    packages.write_text(f"#!/bin/sh\n{made}\n")
    packages.chmod(0o755)

    environ = {"PATH": str(tools_without_a_browser(tmp_path)), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(cache)}
    run = subprocess.run([checkout / ".ci" / "chromium"], env=environ, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    script = Path(run.stdout.strip()).read_text()
    assert all(str(cache / "tidewatch" / "chromium" / folder) in script for folder in folders)
