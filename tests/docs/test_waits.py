"""Tests wait for a state with a time limit (`tests/support/waiting.py`), and never for a time to pass."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator

WAITING: Final = CHECKOUT / "tests" / "support" / "waiting.py"
_MODULES: Final = {"time", "asyncio"}
_IN_TEXT: Final = re.compile(r"\b(?:time|asyncio)\.sleep\b|(?:^|[\s;&|])sleep [\d$]")
"""A sleep in a program that a test writes to a file, in Python or for a shell."""


def sleeps_in(source: str) -> list[int]:
    """Return the lines that sleep, or that start a process that sleeps."""
    if "sleep" not in source:
        # Each way to sleep that is found below has the word in it, and few of the modules do.
        return []
    tree = ast.parse(source)
    modules = {name for node in ast.walk(tree) for name in _modules(node)}
    lines = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.expr) and _sleeps(node, modules)}
    imports = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and _imports_sleep(node)}
    return sorted(lines | imports)


def _modules(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.asname or alias.name for alias in node.names if alias.name in _MODULES)


def _imports_sleep(node: ast.ImportFrom) -> bool:
    return node.module in _MODULES and any(alias.name == "sleep" for alias in node.names)


def _sleeps(node: ast.expr, modules: set[str]) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id=module), attr="sleep"):
            return module in modules
        case ast.List(elts=[ast.Constant(value="sleep"), *_]) | ast.Tuple(elts=[ast.Constant(value="sleep"), *_]):
            return True
        case ast.Constant(value=str(text)):
            return _IN_TEXT.search(text) is not None
        case _:
            return False


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import time\ntime.sleep(1)", [2]),
        ("import time as t\nrun(t.sleep)", [2]),
        ("import asyncio\nasync def f():\n    await asyncio.sleep(0)", [3]),
        ("from time import sleep\nsleep(1)", [1]),
        ("run(['sleep', '60'])", [1]),
        ("run('python', '-c', 'import time; time.sleep(60)')", [1]),
        ("run('sh', '-c', 'true; sleep 60')", [1]),
        ("time = Time()\nPace(0.004, time.sleep, time.clock)", []),
        ("import time\ntime.monotonic()", []),
        ("hook.get('sleep')", []),
        ("'a worker would sleep on it'", []),
    ],
)
def test_sleeps_are_found(source: str, lines: list[int]) -> None:
    assert sleeps_in(source) == lines


def test_tests_sleep_only_while_they_wait_for_conditions() -> None:
    modules = [path for path in sorted((CHECKOUT / "tests").rglob("*.py")) if path not in {WAITING, Path(__file__)}]
    found = [f"{path.relative_to(CHECKOUT)}:{line}" for path in modules for line in sleeps_in(path.read_text())]
    assert found == [], "wait for a state with tests/support/waiting.py"
    assert sleeps_in(WAITING.read_text()), "what is looked for is found where it is"
