"""A mounted Secret with a token, which is replaced as the kubelet does it, by good and by unusable tokens."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Rotation:
    """A token file in a mounted volume, whose files are links into a folder that a link names (`..data`)."""

    def __init__(self, volume: Path) -> None:
        self._volume = volume
        self._versions = 0
        volume.mkdir()
        self.token = volume / "token"
        self.token.symlink_to("..data/token")

    def swap(self, prepare: Callable[[Path], object]) -> None:
        """Switch to a new folder, as the kubelet does."""
        self._versions += 1
        folder = self._volume / f"..{self._versions}"
        folder.mkdir()
        prepare(folder / "token")
        (self._volume / "..new").symlink_to(folder.name)
        (self._volume / "..new").replace(self._volume / "..data")

    def write(self, token: str) -> None:
        """Switch to a folder with this token."""
        self.swap(lambda path: path.write_text(token))


def leave_out(_: Path) -> None:
    """Make no file."""


BROKEN: Final[tuple[Callable[[Path], object], ...]] = (
    os.mkfifo,
    lambda path: path.write_text(""),
    lambda path: path.write_text("two\nlines-of-the-secret"),
    lambda path: path.write_text("s\u00e9cret-of-nobody-\u65e5"),
    lambda path: path.write_bytes(b"\xff\xfesecret-in-bytes"),
    lambda path: path.mkdir(),
    leave_out,
)
"""Functions that make a FIFO, an empty file, two files that no header can carry, a non-text file, a folder, or none."""
