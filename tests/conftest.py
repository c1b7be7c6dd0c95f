"""Makes the fixtures of `tests/support` known to all tests."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Generator

pytest_plugins = ["tests.support.prometheus", "tests.support.program"]

# A time limit for each example would make tests fail on a busy machine; each test as a whole has one.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is imported and collected, a million objects that stay, out of the collections of garbage.

    Each collection would walk through all of them. What a test makes is collected as ever.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
