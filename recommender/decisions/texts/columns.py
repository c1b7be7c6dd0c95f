"""Rows with aligned columns: of texts, of which the last column is wrapped, or of numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from adapter.foundation.reports.terminal_escaping import printable

GAP: Final = "  "
_NARROWEST: Final = 20
"""The minimum width in characters of text that is wrapped, even if a line is then longer than the terminal."""


def columns(
    rows: Sequence[tuple[str, ...]],
    width: int | None,
    finish: Callable[[int, int, str], str] = lambda _row, _column, text: text,
    indent: str = "",
) -> Iterator[str]:
    """Yield the lines of the rows with aligned columns, of which the last is wrapped to `width` characters.

    A text of the last column that has no room there, or of which a word has none, is below its row. `finish` returns
    the final text of a cell from its row, its column and its padded text, for all but the last column.
    """
    safe = [tuple(map(printable, row)) for row in rows]
    widths = [max(len(row[column]) for row in safe) for column in range(len(rows[0]) - 1)]
    start = len(indent) + sum(widths) + len(GAP) * len(widths)
    for place, row in enumerate(safe):
        cells = [finish(place, column, row[column].ljust(size)) for column, size in enumerate(widths)]
        if width is None or _has_room(row[-1], width - start):
            first, *rest = wrap_lines(row[-1], width if width is None else width - start, "") or [""]
            yield indent + GAP.join([*cells, first])
            yield from (" " * start + line for line in rest)
        else:
            yield (indent + GAP.join(cells)).rstrip()
            yield from wrap_lines(row[-1], width, indent + 2 * GAP)


def _has_room(text: str, room: int) -> bool:
    return len(text) <= room or (room >= _NARROWEST and max(map(len, text.split()), default=0) <= room)


def align_columns(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of rows that have a name and then numbers, which are aligned at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *numbers in rows:
        cells = [name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])]
        yield printable(GAP.join(cells).rstrip())


def wrap_lines(text: str, width: int | None, indent: str) -> list[str]:
    """Return the lines of a text, wrapped to `width` characters; with None, a single line of any length."""
    if width is None:
        return [indent + text]
    return textwrap.wrap(
        text,
        max(width, _NARROWEST),
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
