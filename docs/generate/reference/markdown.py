"""Makes tables and code in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; empty if there are no rows."""
    lines = [_row([_cell(text) for text in row]) for row in rows]
    return "\n".join([_row(heads), f"|{'---|' * len(heads)}", *lines, ""]) if lines else ""


def code(text: str) -> str:
    """Return a text as code, which may itself contain backticks; empty for an empty text."""
    if not text:
        return ""
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def plain(text: str) -> str:
    """Return a text of the code as Markdown that shows its characters, except in its own pairs of backticks."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return code(text)
    return "`".join(part if at % 2 else _escaped_text(part) for at, part in enumerate(parts))


def _escaped_text(text: str) -> str:
    for character in "\\*_<[":
        text = text.replace(character, f"\\{character}")
    return text


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
