"""Every link of a page leads to an existing file and heading; links to other hosts are not checked."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from tests.docs.blocks import PAGES
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

OTHERS: Final = (CHECKOUT / "CHANGELOG.md", CHECKOUT / "tests" / "e2e" / "README.md")
_CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_FENCES = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?://|mailto:)([^)\s]+)\)")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings as GitHub makes them: the second of two equal ones ends in -1."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#+ (.+)$", _FENCES.sub("", page.read_text()), flags=re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return frozenset(found)


def broken(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    found = []
    for link in _LINK.findall(_CODE.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and (target.suffix != ".md" or anchor not in anchors(target))):
            found.append(link)
    return found


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_link_has_a_target(page: Path) -> None:
    assert broken(page) == []


def test_a_link_to_a_missing_file_or_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# One `thing`, twice\n\n## Same\n\n## Same\n")
    good = "[a](other.md) [b](other.md#one-thing-twice) [c](other.md#same-1) [d](#here) [e](https://nowhere.invalid/x)"
    page.write_text(f"# Here\n\n{good} `[f](gone.md)`\n[g](gone.md) [h](other.md#same-2) [i](#there)\n")
    assert broken(page) == ["gone.md", "other.md#same-2", "#there"]
