"""The packages that a running program loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCIENTIFIC = frozenset({"numpy", "pandas", "scipy", "statsmodels", "sklearn", "matplotlib"})

_NOTES_WHAT_IS_LOADED = """\
import sys


class Notes:
    def find_spec(self, name, path=None, target=None):
        with open({notes!r}, "a") as stream:
            stream.write(name + "\\n")


sys.meta_path.insert(0, Notes())
"""


class LoadedModules:
    """Records the packages that are loaded by processes with this environment."""

    def __init__(self, folder: Path) -> None:
        self._notes = folder / "loaded"
        path = folder / "path"
        path.mkdir(parents=True)
        (path / "sitecustomize.py").write_text(_NOTES_WHAT_IS_LOADED.replace("{notes!r}", repr(str(self._notes))))
        self.environment: Mapping[str, str] = {"PYTHONPATH": str(path)}

    def packages(self) -> set[str]:
        """Return the packages that were loaded so far."""
        return {name.partition(".")[0] for name in self._notes.read_text().split()}
