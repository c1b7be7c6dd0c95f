"""The documentation says what the program does: lists that exist in both are compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adapter.rulebook.findings import EXPLANATIONS

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROOT = DOCS.parent


def test_the_page_of_findings_explains_every_code_as_the_program_does() -> None:
    page = (DOCS / "findings.md").read_text()
    told = dict(re.findall(r"^## `([a-z-]+)`\n\n(.+?)\n$", page, flags=re.MULTILINE))
    assert told == {code.value: text for code, text in EXPLANATIONS.items()}


@pytest.mark.parametrize("page", [*sorted(DOCS.glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
