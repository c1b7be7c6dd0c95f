"""The documentation says what the program does: lists that exist in both are compared."""

from __future__ import annotations

import re

from adapter.metrics.rulebook.findings import Code
from tests.support.checkout import CHECKOUT

DOCS = CHECKOUT / "docs"


def test_the_page_of_findings_explains_every_code() -> None:
    page = (DOCS / "findings.md").read_text()
    explained = dict(re.findall(r"^## `([a-z-]+)`\n\n(.+?)\n$", page, flags=re.MULTILINE))
    assert set(explained) == {code.value for code in Code}
    assert [code for code, text in explained.items() if not text.endswith(".")] == []
