"""A public class name means one thing in the whole product."""

from __future__ import annotations

import re
from collections import defaultdict

from tests.support.checkout import CHECKOUT


def test_no_two_modules_define_public_classes_of_the_same_name() -> None:
    modules: defaultdict[str, set[str]] = defaultdict(set)
    for package in ("adapter", "recommender"):
        for path in (CHECKOUT / package).rglob("*.py"):
            for name in re.findall(r"^ *class ([^\W_]\w*)", path.read_text(), re.MULTILINE):
                modules[name].add(str(path.relative_to(CHECKOUT)))
    assert len(modules) > 500
    assert {name: sorted(paths) for name, paths in modules.items() if len(paths) > 1} == {}
