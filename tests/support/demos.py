"""The demo as a process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.checkout import CHECKOUT


def started(out: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "demo", "--out", str(out), *arguments],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def read_until(demo: subprocess.Popen[str], pattern: str) -> str:
    assert demo.stdout is not None
    printed = ""
    while not re.search(pattern, printed, re.MULTILINE):
        line = demo.stdout.readline()
        assert line, printed
        printed += line
    return printed


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def children_of(pid: int) -> list[int]:
    """Return all descendants of a process."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(text.rpartition(")")[2].split()[1])
    found = [child for child, parent in parents.items() if parent == pid]
    return found + [grandchild for child in found for grandchild in children_of(child)]
