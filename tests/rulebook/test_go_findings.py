"""Rule files, templates, patterns and queries are read as Go read them (`tests/support/go_findings.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.go_findings import differences, rows_by_op

ROWS = rows_by_op(Path(__file__).parent)


@pytest.mark.parametrize(("op", "rows"), ROWS.items(), ids=list(ROWS))
def test_texts_are_read_as_go_reads_them(op: str, rows: list[dict[str, Any]]) -> None:
    assert differences(op, rows) == []
