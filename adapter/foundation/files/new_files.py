"""Files that are written together: all of them or none, and never over an existing file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from adapter.foundation.files.file_contents import is_folder


class NewFilesError(Exception):
    """The files cannot be written; the message says why, and what to do."""


def refuse_existing(folder: Path, names: tuple[str, ...]) -> None:
    """Raise NewFilesError if the path is not a folder, or if the folder already holds a file of one of the names."""
    if _is_taken(folder) and not is_folder(folder):
        raise NewFilesError(f"{folder} exists and is not a folder: name another one with --out")
    for name in names:
        path = folder / name
        if _is_taken(path):
            raise _exists_error(path)


def write_new_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files into the folder, which is created if it does not exist. Raises NewFilesError.

    They are written to a temporary folder beside their destination. A new folder is renamed as a whole; in an existing
    folder, each file gets its name by a link, which fails if the name is taken.
    """
    refuse_existing(folder, tuple(files))
    is_new = not _is_taken(folder)
    beside = folder.parent if is_new else folder
    try:
        beside.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".tidewatch-init-", dir=beside))
        try:
            for name, text in files.items():
                (temporary / name).write_text(text, encoding="utf-8")
            if is_new:
                _rename(temporary, folder)
            else:
                _link_all(temporary, folder, tuple(files))
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise NewFilesError(f"{folder}: cannot be written: {error.strerror}: name another folder with --out") from error


def _is_taken(path: Path) -> bool:
    # `Path.exists` raises the error of a path that may not be examined; writing there reports it, with the repair.
    return os.path.lexists(path)


def _rename(temporary: Path, folder: Path) -> None:
    # A temporary folder is private; this one gets the permissions of any folder that its user makes.
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(0o777 & ~mask)
    temporary.rename(folder)


def _link_all(temporary: Path, folder: Path, names: tuple[str, ...]) -> None:
    linked: list[Path] = []
    try:
        for name in names:
            path = folder / name
            try:
                path.hardlink_to(temporary / name)
            except FileExistsError as error:
                raise _exists_error(path) from error
            linked.append(path)
    except BaseException:
        for path in linked:
            path.unlink(missing_ok=True)
        raise


def _exists_error(path: Path) -> NewFilesError:
    return NewFilesError(f"{path} exists and is not overwritten: move it away, or name another folder with --out")
