"""The tutorials as a reader follows them: files that they show are saved, and commands run in order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.docs.blocks import blocks_of
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TUTORIALS: Final = CHECKOUT / "docs" / "tutorials"
IN_CHECKOUT: Final = ("docs", "helm", "rules")
"""Folders of the checkout that tutorials name."""
_FILE: Final = re.compile(r"# (\S+\.yaml)\n")


@dataclass(frozen=True, slots=True)
class Step:
    """One block of a tutorial: a file that is saved, or commands."""

    place: str
    text: str
    file: str = ""
    """Name of the file; empty for commands."""


def steps_of(name: str) -> Iterator[Step]:
    """Yield the steps of a tutorial."""
    for block in blocks_of(TUTORIALS / f"{name}.md"):
        file = _FILE.match(block.text)
        yield Step(block.place, block.text, file[1] if file else "")


def reader_s_folder(folder: Path) -> Path:
    """Make a folder look like a reader's checkout; what is saved there stays out of the real one."""
    for name in IN_CHECKOUT:
        (folder / name).symlink_to(CHECKOUT / name)
    return folder
