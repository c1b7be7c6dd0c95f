"""A control group (version 2 or 1) with limits on CPU and memory, if this machine allows one to be created."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ROOT = Path("/sys/fs/cgroup")
_PERIOD_MICROSECONDS = 100_000
"""The period that the kubelet sets."""


@contextmanager
def limited_group(cpu_milli: int | None, memory_mib: int | None) -> Iterator[tuple[str, ...] | None]:
    """Yield the words that make a command run within the limits if put before it; None if no group can be made.

    A limit of None means no limit.
    """
    name = f"tidewatch-bench-{os.getpid()}"
    is_second_version = (_ROOT / "cgroup.controllers").exists()
    none = "max" if is_second_version else "-1"
    quota = none if cpu_milli is None else str(cpu_milli * _PERIOD_MICROSECONDS // 1000)
    most_bytes = none if memory_mib is None else str(memory_mib << 20)
    folders: list[Path] = []
    try:
        if is_second_version:
            limits = {"cpu.max": f"{quota} {_PERIOD_MICROSECONDS}", "memory.max": most_bytes}
            folders.append(_made(_ROOT / name, limits))
        else:
            cpu = {"cpu.cfs_period_us": str(_PERIOD_MICROSECONDS), "cpu.cfs_quota_us": quota}
            folders.append(_made(_ROOT / "cpu" / name, cpu))
            folders.append(_made(_ROOT / "memory" / name, {"memory.limit_in_bytes": most_bytes}))
    except OSError:
        yield None
    else:
        yield _enters(folders)
    finally:
        for folder in folders:
            with suppress(OSError):
                folder.rmdir()


def _made(folder: Path, limits: Mapping[str, str]) -> Path:
    folder.mkdir()
    try:
        for file, value in limits.items():
            (folder / file).write_text(value)
    except OSError:
        folder.rmdir()
        raise
    return folder


def _enters(folders: Sequence[Path]) -> tuple[str, ...]:
    entering = "; ".join(f"echo $$ > {folder}/cgroup.procs" for folder in folders)
    return ("/bin/sh", "-ec", f'{entering}; exec "$@"', "sh")
