"""A public class name means one thing in the whole product."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.support.checkout import CHECKOUT


def test_no_two_modules_define_public_classes_of_the_same_name() -> None:
    modules: defaultdict[str, set[str]] = defaultdict(set)
    for package in ("adapter", "recommender"):
        for path in (CHECKOUT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    modules[node.name].add(str(path.relative_to(CHECKOUT)))
    assert {name: sorted(paths) for name, paths in modules.items() if len(paths) > 1} == {}
