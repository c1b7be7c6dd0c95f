"""The documentation says what the program does: lists that exist in both are compared."""

from __future__ import annotations

import re
import tomllib

from adapter.metrics.rulebook.findings import Code
from tests.docs.blocks import PAGES
from tests.support.checkout import CHECKOUT

DOCS = CHECKOUT / "docs"


def test_the_page_of_findings_explains_every_code() -> None:
    page = (DOCS / "findings.md").read_text()
    explained = dict(re.findall(r"^## `([a-z-]+)`\n\n(.+?)\n$", page, flags=re.MULTILINE))
    assert set(explained) == {code.value for code in Code}
    assert [code for code, text in explained.items() if not text.endswith(".")] == []


def test_images_and_archives_on_the_pages_are_of_this_version() -> None:
    version = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["version"]
    named = re.compile(r"\btidewatch[:-](\d+\.\d+\.\d+)")
    others = {page.name: set(named.findall(page.read_text())) - {version} for page in PAGES}
    assert {name: found for name, found in others.items() if found} == {}


def test_each_point_of_a_list_begins_a_line() -> None:
    swallowed = re.compile(r"^.*[.:;] - [A-Z].*$", re.MULTILINE)
    assert [line for page in PAGES for line in swallowed.findall(page.read_text())] == []


def test_lines_of_prose_are_short_enough_for_a_review_side_by_side() -> None:
    """A paragraph of findings.md is one line, as the test above reads it; a command is not broken."""
    prose = [page for page in PAGES if page.parent.name != "reference" and page.name not in {"findings.md", "rooms.md"}]
    fences = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
    lines = [(page.name, line) for page in prose for line in fences.sub("", page.read_text()).splitlines()]
    exempt = re.compile(r"\||    |!\[|`[^`]*`$")
    assert [each for each in lines if len(each[1]) > 160 and not exempt.match(each[1])] == []
