"""docs/architecture.md is short, and the places exist that it and its sister page name."""

from __future__ import annotations

import re
import tomllib

import pytest

from docs.generate.rooms import first_sentence, rooms_page
from tests.support.checkout import CHECKOUT

PAGES = {name: (CHECKOUT / "docs" / f"{name}.md").read_text() for name in ("architecture", "where-to-add")}
LONGEST_BYTES = 12_288
ROOTS = ("", "adapter", "adapter/metrics", "adapter/foundation", "recommender")
"""Folders to which the places named on a page are relative."""
LOADS_NUMPY = {"commands", "nodes"}
ABOVE_BOTH_PROGRAMS = {"kubectl"}


def places(text: str) -> list[str]:
    """Return what looks like a path of the repository: words with slashes that begin like a folder or a module."""
    return sorted(
        {place for place in re.findall(r"`([a-z][\w./-]*/[\w./-]*)`", text) if not place.startswith("tidewatch")}
    )


def exists(place: str) -> bool:
    bases = [CHECKOUT / root / place.rstrip("/") for root in ROOTS]
    return any(base.exists() or base.with_name(f"{base.name}.py").exists() for base in bases)


def test_the_page_stays_short() -> None:
    assert len(PAGES["architecture"].encode()) <= LONGEST_BYTES


@pytest.mark.parametrize("page", PAGES)
def test_the_places_that_a_page_names_exist(page: str) -> None:
    found = places(PAGES[page])
    assert found
    assert [place for place in found if not exists(place)] == []


def sources_of(contract_id: str) -> set[str]:
    """Return the modules that an import contract names as sources."""
    contracts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return set(next(contract for contract in contracts if contract["id"] == contract_id)["source_modules"])


def folders_of(program: str) -> set[str]:
    return {path.parent.name for path in (CHECKOUT / program).glob("*/__init__.py")}


def test_each_other_folder_of_the_adapter_is_forbidden_to_load_numpy() -> None:
    assert sources_of("serving-stays-light") == {f"adapter.{folder}" for folder in folders_of("adapter") - LOADS_NUMPY}


def test_each_folder_of_the_recommender_stands_on_the_foundation() -> None:
    below = folders_of("recommender") - ABOVE_BOTH_PROGRAMS
    assert sources_of("recommender-on-the-foundation") == {f"recommender.{folder}" for folder in below}


def test_the_page_of_rooms_is_current() -> None:
    assert (CHECKOUT / "docs" / "rooms.md").read_text() == rooms_page(CHECKOUT), "run: make docs"


def test_every_module_begins_with_a_sentence() -> None:
    modules = [path for top in ("adapter", "recommender") for path in (CHECKOUT / top).rglob("*.py")]
    without = [str(path) for path in modules if path.name != "__init__.py" and not first_sentence(path)]
    assert without == []
