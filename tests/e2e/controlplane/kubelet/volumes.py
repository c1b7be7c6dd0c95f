"""Volumes as folders, written as a kubelet writes them, so that programs that watch them meet the real behaviour.

Files of ConfigMaps, Secrets and projections are links into `..data`, which itself is a link to a folder with one
version. An update makes a new folder and switches that one link: all files change together, and an opened file never
changes.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

DATA: Final = "..data"


@dataclass(frozen=True, slots=True)
class File:
    """One file of a volume."""

    content: bytes
    mode: int


def write_atomically(folder: Path, files: Mapping[str, File], group: int | None = None) -> bool:
    """Give the folder exactly these files, by paths relative to it; return whether anything changed."""
    if _current(folder) == files:
        return False
    old = _data_folder(folder)
    fresh = folder / f"..{_next_number(folder)}"
    for name, file in files.items():
        _write(fresh / name, file, group)
    fresh.mkdir(exist_ok=True)
    fresh.chmod(0o755)
    draft = folder / "..data_tmp"
    draft.symlink_to(fresh.name)
    draft.replace(folder / DATA)
    _link_names(folder, {name.partition("/")[0] for name in files})
    if old:
        shutil.rmtree(old)
    return True


def readable_by_group(files: Mapping[str, File]) -> dict[str, File]:
    """Return the files as a pod with a `fsGroup` gets them, readable by its group."""
    return {name: File(file.content, file.mode | 0o440) for name, file in files.items()}


def make_empty(folder: Path, group: int | None) -> None:
    """Make an emptyDir that everybody may write to, and whose files belong to the pod's group."""
    folder.mkdir(parents=True, exist_ok=True)
    if group is not None:
        os.chown(folder, -1, group)
    folder.chmod(0o777 if group is None else 0o2777)


def _current(folder: Path) -> dict[str, File] | None:
    """Return the files that were written last, as they were passed in; None before the first time."""
    data = _data_folder(folder)
    if data is None:
        return None
    files = (path for path in data.rglob("*") if path.is_file())
    return {str(path.relative_to(data)): File(path.read_bytes(), path.stat().st_mode & 0o777) for path in files}


def _data_folder(folder: Path) -> Path | None:
    link = folder / DATA
    return folder / link.readlink() if link.is_symlink() else None


def _next_number(folder: Path) -> int:
    data = _data_folder(folder)
    return 1 + int(data.name.removeprefix("..")) if data else 1


def _write(path: Path, file: File, group: int | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.content)
    if group is not None:
        os.chown(path, -1, group)
    path.chmod(file.mode)


def _link_names(folder: Path, names: set[str]) -> None:
    for path in folder.iterdir():
        if path.is_symlink() and path.name != DATA and path.name not in names:
            path.unlink()
    for name in names:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path(DATA) / name)
