"""Reports of benchmarks: one document with stable keys for programs, one table for people.

`python -m benchmarks.NAME -o json` prints the document; without `-o json`, it prints a table of the same rows.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Cell: TypeAlias = "str | int | float | bool | None"
Row: TypeAlias = "Mapping[str, Cell]"

WIDEST_TABLE = 120
"""The largest width of a table, in characters; a wider table is transposed, so that each key has a line."""


class Report(msgspec.Struct, frozen=True, rename={"api_version": "apiVersion"}, kw_only=True):
    """The result of a benchmark."""

    api_version: str = "tidewatch.io/v1alpha1"
    kind: str = "BenchmarkReport"
    name: str
    machine: dict[str, Any]
    rows: list[dict[str, Any]]


def report(name: str, rows: Sequence[Row], **about: Cell) -> Report:
    """Return the document; `about` has further facts about the machine, such as versions of programs."""
    return Report(name=name, machine={**machine(), **about}, rows=[dict(row) for row in rows])


def machine() -> dict[str, Cell]:
    """Return the facts about the machine that figures depend on, and how busy the machine was before."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_average_1m": round(os.getloadavg()[0], 2),
    }


def as_json(found: Report) -> str:
    """Return the document as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(found), indent=1).decode()


def from_json(text: str | bytes) -> Report:
    """Read a document. Raises msgspec.DecodeError (msgspec.ValidationError is one)."""
    return msgspec.json.decode(text, type=Report)


def as_text(found: Report) -> str:
    """Return a heading, the machine, and a table of the rows."""
    return f"{found.name}\n{about_machine(found)}\n\n{table(found.rows)}\n"


def about_machine(found: Report) -> str:
    """Return the facts about the machine in one line."""
    return ", ".join(f"{key} {_shown(value)}" for key, value in found.machine.items())


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table with the keys at the top; if that is too wide, with the keys at the left."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    grid = [keys, *([_shown(row.get(key)) for key in keys] for row in rows)]
    lines = _aligned(grid)
    if lines and len(lines[0]) > WIDEST_TABLE:
        lines = _aligned([list(column) for column in zip(*grid, strict=True)])
    return "\n".join(line.rstrip() for line in lines)


def _aligned(grid: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of equally long cells; numbers, and the headings of columns of numbers, are right-aligned."""
    columns = [_column(cells) for cells in zip(*grid, strict=True)]
    return ["  ".join(line) for line in zip(*columns, strict=True)]


def _column(cells: Sequence[str]) -> list[str]:
    width = max(map(len, cells))
    heads_numbers = all(map(_is_number, cells[1:]))
    return [cell.rjust(width) if heads_numbers or _is_number(cell) else cell.ljust(width) for cell in cells]


def _is_number(cell: str) -> bool:
    return cell == "-" or cell.removeprefix("-")[:1].isdigit()


def _shown(cell: Cell) -> str:
    match cell:
        case None:
            return "-"
        case bool():
            return "yes" if cell else "no"
        case int():
            return f"{cell:,}"
        case float():
            return f"{cell:,.3f}".rstrip("0").rstrip(".")
        case _:
            return str(cell)


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())
