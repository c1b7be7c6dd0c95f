"""The table of arrows in docs/architecture.md is what the code does."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
EVERYTHING = "everything"
MAY_LOAD_NUMPY = {"commands", "nodes"}


def table() -> dict[str, frozenset[str] | None]:
    """Return each folder of `adapter`, and which others it may import; None: all of them."""
    section = PAGE.read_text().partition("## The arrows")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+`[^|]*) \| ([^|]+) \|$", section, re.MULTILINE)
    found: dict[str, frozenset[str] | None] = {}
    for folders, allowed in rows:
        named = frozenset(re.findall(r"`(\w+)`", allowed))
        for folder in re.findall(r"`(\w+)`", folders):
            found[folder] = None if allowed.startswith(EVERYTHING) else named
    return found


def folders(package: str) -> set[str]:
    return {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}


@functools.cache
def imports(package: str) -> dict[str, set[str]]:
    """Return which folder imports which modules of ours, also those that are imported for types alone."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in (ROOT / package).rglob("*.py"):
        folder = path.relative_to(ROOT / package).parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found[folder] |= {name for name in names if name.split(".")[0] in {"adapter", "recommender"}}
    return found


def arrows(package: str, to: str) -> set[tuple[str, str]]:
    return {
        (folder, name.split(".")[1])
        for folder, names in imports(package).items()
        for name in names
        if name.startswith(f"{to}.") and (package != to or name.split(".")[1] != folder)
    }


def rooms() -> list[tuple[str, str, str]]:
    """Return the rows of the tables of rooms: folder, room or files, what is there."""
    section = PAGE.read_text().partition("## The rooms")[2].partition("### `tests`")[0]
    parts = [part.partition("`") for part in section.split("\n### `")[1:]]
    return [
        (folder, room, text)
        for folder, _, rows in parts
        for room, text in re.findall(r"^\| (`[^|]+) \| (.+) \|$", rows, re.MULTILINE)
    ]


@pytest.mark.parametrize("folder", sorted({folder for folder, *_ in rooms()}))
def test_the_rooms_of_a_folder_are_modules_and_folders_of_it(folder: str) -> None:
    base = next(base for package in ("adapter", "recommender") if (base := ROOT / package / folder).is_dir())
    named = {name for place, room, _ in rooms() if place == folder for name in re.findall(r"`(\w+)/?`", room)}
    assert named
    assert [name for name in named if not (base / name).is_dir() and not (base / f"{name}.py").is_file()] == []


def test_the_modules_that_the_rooms_mention_exist() -> None:
    known = {path.stem for package in ("adapter", "recommender") for path in (ROOT / package).rglob("*")}
    mentioned = {name for *_, text in rooms() for name in re.findall(r"`([a-z][a-z_]*)`", text)}
    assert mentioned - known == set()


def test_each_folder_of_the_adapter_has_its_row() -> None:
    assert set(table()) - {"recommender"} == folders("adapter")


@pytest.mark.parametrize("folder", sorted(folders("adapter")))
def test_a_folder_imports_what_the_table_allows_and_nothing_else(folder: str) -> None:
    allowed = table()[folder]
    imported = {target for source, target in arrows("adapter", "adapter") if source == folder}
    assert allowed is None or imported <= allowed


def test_the_recommender_imports_what_the_table_allows() -> None:
    allowed = table()["recommender"]
    assert allowed is not None
    assert {target for _, target in arrows("recommender", "adapter")} <= allowed


def test_the_adapter_does_not_import_the_recommender() -> None:
    assert not arrows("adapter", "recommender")


def test_each_other_folder_of_the_adapter_is_forbidden_to_load_numpy() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    light = next(contract for contract in contracts if contract["id"] == "serving-stays-light")
    assert set(light["source_modules"]) == {f"adapter.{folder}" for folder in folders("adapter") - MAY_LOAD_NUMPY}
