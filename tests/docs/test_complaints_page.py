"""The page of complaints and the tests of complaints refer to each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (CHECKOUT / "docs" / "what-users-complained-of.md").read_text()
MODULES = sorted((CHECKOUT / "tests" / "complaints").glob("test_*.py"))


def names_in(module: Path) -> list[str]:
    # The formatter leaves a function of a module at the beginning of a line: hundreds of modules need no parser.
    return re.findall(r"^def (test_\w+)", module.read_text(), re.MULTILINE)


def test_the_page_names_every_test_of_a_complaint_and_no_other() -> None:
    found = [name for module in MODULES for name in names_in(module)]
    assert len(found) > 40
    assert sorted(set(re.findall(r"`(test_\w+__\w+)`", PAGE))) == sorted(found)


def test_every_test_of_a_complaint_names_where_it_was_made() -> None:
    for module in MODULES:
        for name in names_in(module):
            assert re.search(r"__[a-z0-9_]+_[0-9]+$", name), f"{module.name}: {name}"


def test_the_heavier_tests_that_are_named_exist() -> None:
    named = {path for module in MODULES for path in re.findall(r"`(tests/[a-z0-9_/]+(?:\.py|/))`", module.read_text())}
    named |= set(re.findall(r"`((?:tests|docs|benchmarks)/[a-z0-9_/]+(?:\.py|/))`", PAGE))
    assert named
    assert [path for path in named if not (CHECKOUT / path).exists()] == []


def test_the_tests_of_other_folders_that_the_page_names_exist() -> None:
    named = {name for name in re.findall(r"`(test_\w+)`", PAGE) if "__" not in name}
    assert named
    known = {name for module in (CHECKOUT / "tests").rglob("test_*.py") for name in names_in(module)}
    assert named - known == set()
