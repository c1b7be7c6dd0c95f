"""The part of the logs that was written during a test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.controlplane.control_plane import ControlPlane

_LINES_SHOWN: Final = 15


class LogMarks:
    """How long each log was at one moment."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._lengths = {path: path.stat().st_size for path in plane.logs}

    def kept(self, test: str) -> list[tuple[str, str]]:
        """Keep what was written since then under the test's name; return title and last lines of each log that grew."""
        folder = self._plane.folder / "failures" / re.sub(r"[^\w.-]+", "-", test)
        folder.mkdir(parents=True, exist_ok=True)
        return [section for path in self._plane.logs if (section := self._section(path, folder))]

    def _section(self, path: Path, folder: Path) -> tuple[str, str] | None:
        with path.open("rb") as log:
            log.seek(self._lengths.get(path, 0))
            written = log.read()
        if not written:
            return None
        name = str(path.relative_to(self._plane.folder)).replace("/", "-")
        (folder / name).write_bytes(written)
        lines = written.decode(errors="replace").splitlines()[-_LINES_SHOWN:]
        return f"end of {folder / name}", "\n".join(lines)
