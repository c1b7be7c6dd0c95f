"""The defaults in tables of the pages are those of the reference, which is made from the code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from adapter.foundation.objects.durations import parse_duration
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS: Final = CHECKOUT / "docs"
ENTRY: Final = "recommendations[]."
PAGES: Final = {
    "cluster-size.md": ("recommender-configuration", f"{ENTRY}clusterSize."),
    "predictive.md": ("recommender-configuration", f"{ENTRY}predictive."),
    "proportional.md": ("recommender-configuration", f"{ENTRY}proportional."),
    "sizes.md": ("recommender-configuration", f"{ENTRY}resources."),
    "recommendation-objects.md": ("recommender-configuration", "recommendationObjects."),
    "recommender.md": ("recommender-configuration", ""),
    "readiness.md": ("tidewatch-adapter", "tidewatch-adapter readiness."),
    "metric-rule-objects.md": ("tidewatch-adapter", "tidewatch-adapter serve."),
}
"""The page of the reference, and what the names of its keys begin with, by page."""
_TEXTS: Final = re.compile(r"`([^`]+)`")


def tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Yield the heads and the rows of each table."""
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        heads, _, *rows = ([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines())
        yield heads, rows


def referred(page: str) -> dict[str, str]:
    """Return the default of each key or flag of a page of the reference, by its full name."""
    found = {}
    for section in (DOCS / "reference" / f"{page}.md").read_text().split("\n## ")[1:]:
        title = section.partition("\n")[0].strip("`")
        place = "" if title == "The file" else f"{title}."
        for heads, rows in tables(section):
            for row in rows if "default" in heads else ():
                name = _TEXTS.findall(row[0])[-1].split()[0]
                found[f"{place}{name}"] = row[heads.index("default")].strip("`")
    return found


def stated(page: str) -> Iterator[tuple[str, str]]:
    """Yield each key or flag of a page's tables with its default, where the table states one in the form of a value."""
    for heads, rows in tables((DOCS / page).read_text()):
        names_of_columns = [head.lower() for head in heads]
        for row in rows if "default" in names_of_columns else ():
            names, defaults = _TEXTS.findall(row[0]), _TEXTS.findall(row[names_of_columns.index("default")])
            if len(defaults) == 1:
                yield from zip(names, defaults * len(names), strict=True)
            elif len(defaults) == len(names):
                yield from zip(names, defaults, strict=True)


def plain(value: str) -> object:
    try:
        return parse_duration(value)
    except ValueError:
        return value.replace(",", "")


@pytest.mark.parametrize("page", PAGES)
def test_defaults_are_those_of_the_code(page: str) -> None:
    reference, prefix = PAGES[page]
    known = {name: default for name, default in referred(reference).items() if name.startswith(prefix)}
    compared = [(name, default, of_the_code(name, known)) for name, default in stated(page)]
    assert any(values for _, _, values in compared)
    assert [row for row in compared if row[2] and plain(row[1]) not in row[2]] == []


def of_the_code(name: str, known: dict[str, str]) -> set[object]:
    """Return the defaults of all keys with this name, which may lack its beginning; empty if the reference has none."""
    ending = f".{name.lstrip('.')}"
    values = {default for each, default in known.items() if f".{each}".endswith(ending)}
    return {plain(value) for value in values - {"", "required"}}
