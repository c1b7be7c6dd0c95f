"""The code blocks of the pages, fenced and indented, as a reader of Markdown sees them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

PAGES: Final = (
    *(CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "helm/tidewatch/README.md")),
    *sorted((CHECKOUT / "docs").rglob("*.md")),
)
_FENCE = re.compile(r"^( *)```(\w*)$")
_ASSIGNED = re.compile(r"^\w+=\$\((.*)\)$")
"""A command whose output is assigned to a variable."""
_INDENTED: Final = " " * 4


@dataclass(frozen=True, slots=True)
class Block:
    """One code block of a page."""

    page: Path
    line: int
    language: str
    """The block's language; empty for an indented block, and for a fence that names none."""
    text: str
    """The block without its indentation, with a line break at the end."""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(CHECKOUT)}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page; raise ValueError for a fence that does not end."""
    lines = page.read_text().split("\n")
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence:
            end = lines.index(f"{fence[1]}```", at + 1)
            yield Block(page, at + 1, fence[2], _without_margin(lines[at + 1 : end]))
            at = end + 1
        elif lines[at].startswith(_INDENTED) and (at == 0 or not lines[at - 1].strip()):
            end = _end_of_indented(lines, at)
            yield Block(page, at + 1, "", _without_margin(lines[at:end]))
            at = end
        else:
            at += 1


def commands_of(block: Block) -> list[list[str]]:
    """Return the words of each command of a block, as a shell splits them.

    In a session, only what follows a prompt (`$ `) is a command. Raise ValueError for quotes that do not end.
    """
    text = block.text
    if text.startswith("$ "):
        text = "".join(re.findall(r"^\$ ((?:.*\\\n)*.*\n)", text, flags=re.MULTILINE))
    found, pending = [], ""
    for line in text.replace("\\\n", " ").splitlines():
        pending += _ASSIGNED.sub(r"\1", line)
        try:
            words = shlex.split(pending, comments=True)
        except ValueError:
            pending += "\n"
            continue
        found += [words] if words else []
        pending = ""
    if pending:
        raise ValueError(f"{block.place}: quotes that do not end: {pending}")
    return found


def _end_of_indented(lines: Sequence[str], start: int) -> int:
    end = start
    for at in range(start, len(lines)):
        if lines[at].startswith(_INDENTED):
            end = at + 1
        elif lines[at].strip():
            break
    return end


def _without_margin(lines: Sequence[str]) -> str:
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines) + "\n"
