"""What Go makes of the texts in go_findings.json: all that ever differed here and was mended, and a sample of the rest.

`make e2e` compares the table with Go itself; here our code is compared with the table, where no Go is needed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.asking import Refused
from tests.e2e.comparisons import COMPARISONS

ROWS: Final[list[dict[str, Any]]] = json.loads(Path(__file__).with_name("go_findings.json").read_text("utf-8"))
"""Op of the oracle, what it was asked, and its answer, null where it refused."""
BY_OP: Final = {comparison.op: comparison for comparison in COMPARISONS}


@pytest.mark.parametrize("op", sorted({row["op"] for row in ROWS}))
def test_texts_are_read_as_go_reads_them(op: str) -> None:
    comparison = BY_OP[op]
    rows = [row for row in ROWS if row["op"] == op]
    gos = [Refused("") if row["answer"] is None else comparison.gos(row["answer"]) for row in rows]
    ours = [comparison.ours(row["asked"]) for row in rows]
    assert [row["asked"] for row, go, our in zip(rows, gos, ours, strict=True) if go != our] == []
