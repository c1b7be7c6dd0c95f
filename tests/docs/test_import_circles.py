"""Modules import each other in one direction, imports for types included."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

import pytest

from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path


def module_name(path: Path) -> str:
    name = ".".join(path.relative_to(CHECKOUT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def import_graph() -> dict[str, set[str]]:
    """Return all modules of the product, and which others each of them imports."""
    paths = {
        module_name(path): path for package in ("adapter", "recommender") for path in (CHECKOUT / package).rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        imported: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                submodules = {f"{node.module}.{alias.name}" for alias in node.names}
                # A name that is no module of its own is defined in the module that it is imported from.
                imported |= {name if name in paths else node.module for name in submodules}
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
        graph[name] = imported & paths.keys() - {name}
    return graph


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    return import_graph()


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """Return a circle of modules, with the first of them also at the end; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def test_a_circle_is_found() -> None:
    assert set(circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}


def test_no_modules_import_each_other_in_a_circle(graph: dict[str, set[str]]) -> None:
    assert circle_in(graph) == []
