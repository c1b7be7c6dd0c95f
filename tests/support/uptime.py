"""Machines of another age: Linux counts the monotonic clock from the start of the machine.

A program that takes the time since "never" for a short one, or its first moment for one far from 0, works on the young
machine of a developer and fails on a node that has run for a month.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

UPTIMES_SECONDS: Final = (0.0, 30 * 86_400.0, 3 * 365 * 86_400.0)
"""How long machines have run: not at all, for a month, and for three years."""

_SITE: Final = """
import time

_offset_seconds = {offset_seconds!r}
_monotonic, _monotonic_ns = time.monotonic, time.monotonic_ns
time.monotonic = lambda: _monotonic() + _offset_seconds
time.monotonic_ns = lambda: _monotonic_ns() + int(_offset_seconds * 10**9)
"""


def environment_of_uptime(folder: Path, uptime_seconds: float) -> dict[str, str]:
    """Return the variables by which Python programs that start now believe in this uptime, all in the same one."""
    folder.mkdir(parents=True, exist_ok=True)
    site = _SITE.format(offset_seconds=uptime_seconds - time.monotonic())
    (folder / "sitecustomize.py").write_text(site)
    return {"PYTHONPATH": str(folder)}
