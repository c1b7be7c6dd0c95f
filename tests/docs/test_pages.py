"""The documentation says what the program does: lists that exist in both are compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adapter.rulebook.findings import Code

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROOT = DOCS.parent


def test_the_page_of_findings_explains_every_code() -> None:
    page = (DOCS / "findings.md").read_text()
    explained = dict(re.findall(r"^## `([a-z-]+)`\n\n(.+?)\n$", page, flags=re.MULTILINE))
    assert set(explained) == {code.value for code in Code}
    assert [code for code, text in explained.items() if not text.endswith(".")] == []


@pytest.mark.parametrize("page", [*sorted(DOCS.glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
