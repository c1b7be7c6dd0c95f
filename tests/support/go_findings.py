"""Comparison of this project's code with what Go answered, as recorded in the `go_findings.json` of a folder of tests.

Each table holds every difference that was ever found and fixed, and a sample of the rest. `make e2e` compares the
tables with Go itself; the tests of the folders compare our code with the tables, which needs no Go.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.e2e.oracle.asking import Refused
from tests.e2e.oracle.comparisons import COMPARISONS

if TYPE_CHECKING:
    from pathlib import Path

_BY_OP: Final = {comparison.op: comparison for comparison in COMPARISONS}


def rows_by_op(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a folder's table by operation; a null answer means that Go refused the input."""
    rows: list[dict[str, Any]] = json.loads((folder / "go_findings.json").read_text("utf-8"))
    return {op: [row for row in rows if row["op"] == op] for op in sorted({row["op"] for row in rows})}


def differences(op: str, rows: list[dict[str, Any]]) -> list[Any]:
    """Return the inputs of the rows that our code reads differently from Go."""
    comparison = _BY_OP[op]
    gos = [Refused("") if row["answer"] is None else comparison.gos(row["answer"]) for row in rows]
    ours = [comparison.ours(row["asked"]) for row in rows]
    return [row["asked"] for row, go, our in zip(rows, gos, ours, strict=True) if go != our]
