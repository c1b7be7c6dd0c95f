"""Durations, names, quantities, selectors, rule files, templates, patterns and queries are read as Go reads them.

The tables are described in `tests/support/go_findings.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.go_findings import differences, rows_by_op

ROWS = {
    (table.parent.name, op): rows
    for table in sorted(Path(__file__).parent.rglob("go_findings.json"))
    for op, rows in rows_by_op(table.parent).items()
}


def test_every_folder_with_a_table_is_compared() -> None:
    assert {folder for folder, _ in ROWS} == {"objects", "rulebook"}


@pytest.mark.parametrize(("place", "rows"), ROWS.items(), ids=["-".join(place) for place in ROWS])
def test_texts_are_read_as_go_reads_them(place: tuple[str, str], rows: list[dict[str, Any]]) -> None:
    _, op = place
    assert differences(op, rows) == []
