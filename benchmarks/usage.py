"""Processor time and memory of a process and its children, as the kernel counts them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Usage:
    """The processor time and memory of a process and its descendants."""

    cpu_seconds: float
    """User and system time since each process began, in steps of 10 ms."""
    rss_mib: float
    """The sum of the resident memory of each process, in which shared pages count several times."""
    peak_mib: float
    """The sum of the peak resident memory of each process."""
    pss_mib: float
    """Resident memory in which shared pages are divided among the processes that share them."""


def usage(pid: int) -> Usage:
    """Return the current usage of the process tree of `pid`; a process that ends meanwhile is left out."""
    cpu = rss = peak = pss = 0.0
    for member in _tree(pid):
        try:
            cpu += _cpu_seconds(member)
            status = _sizes(member, "status")
            rss += status["VmRSS"]
            peak += status["VmHWM"]
            pss += _sizes(member, "smaps_rollup")["Pss"]
        except (OSError, KeyError):
            continue
    return Usage(round(cpu, 2), round(rss, 1), round(peak, 1), round(pss, 1))


def _tree(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for member in found:
        found += children.get(member, ())
    return found


def _stat(pid: int) -> list[str]:
    """Return the fields from the state on; the name before them may contain blanks."""
    try:
        return (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND if fields else 0.0


def _sizes(pid: int, file: str) -> dict[str, float]:
    """Return the entries of a file of `NAME: N kB` lines, in MiB."""
    lines = (_PROC / str(pid) / file).read_text(encoding="utf-8").splitlines()
    entries = (line.partition(":") for line in lines if line.endswith(" kB"))
    return {name: int(value.split()[0]) / 1024 for name, _, value in entries}
