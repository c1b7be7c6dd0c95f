"""Paths that are not regular files, or that would block an open."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.files.file_contents import (
    first_bytes,
    mapped_regular,
    opened_regular,
    read_regular,
    require_regular,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def read_open(path: Path) -> bytes:
    with opened_regular(path) as stream:
        return stream.read()


def read_mapped(path: Path) -> bytes:
    with mapped_regular(path) as content:
        return bytes(content[:])


def read_required(path: Path) -> bytes:
    require_regular([path])
    return path.read_bytes()


READERS = (read_regular, read_open, read_mapped, read_required, lambda path: first_bytes(path, 100))


@pytest.mark.parametrize("read", READERS)
def test_a_mounted_secret_is_read_through_its_links(tmp_path: Path, read: Callable[[Path], bytes]) -> None:
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026" / "token").write_bytes(b"content")
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "token").symlink_to("..data/token")
    assert read(tmp_path / "token") == b"content"


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "socket", "link to a fifo"])
def test_a_path_that_is_not_a_regular_file_is_refused_without_waiting(
    tmp_path: Path, kind: str, read: Callable[[Path], bytes]
) -> None:
    path = tmp_path / "file"
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        match kind:
            case "fifo":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "device":
                path.symlink_to("/dev/zero")
            case "socket":
                listener.bind(str(path))
            case _:
                os.mkfifo(tmp_path / "fifo")
                path.symlink_to("fifo")
        with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
            read(path)
