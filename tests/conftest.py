"""The fixtures of `tests/support`, made known to all tests."""

from __future__ import annotations

import gc
from contextlib import suppress
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
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
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Keep the garbage collector from walking through the million imported and collected objects, which stay anyway.

    Objects that a test makes are collected as usual.
    """
    gc.disable()
    try:
        _import_own_share(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        session.config.pluginmanager.register(_Exemption())


class _Exemption:
    """Keeps the objects of the collection exempt, although commands that run in this process end all exemptions.

    Otherwise, each full collection after the first such command would take up to a second.
    """

    def __init__(self) -> None:
        self._is_lifted = False
        self._unfreeze = gc.unfreeze
        pytest.MonkeyPatch().setattr(gc, "unfreeze", self._lift)

    def _lift(self) -> None:
        self._unfreeze()
        self._is_lifted = True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Exempt the objects again after a test in which their exemption ended, without the young garbage."""
        found = yield
        if self._is_lifted:
            gc.collect(1)
            gc.freeze()
            self._is_lifted = False
        return found


def _import_own_share(config: pytest.Config) -> None:
    """Import this worker's share of the modules first, so that in a new checkout each module is compiled once.

    Every worker imports all modules in the same order; without this, each worker would compile all of them.
    """
    if (worker := getattr(config, "workerinput", None)) is None:
        return
    skipped = config.getini("norecursedirs")
    number, workers = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    folders = [folder for each in config.args if (folder := Path(each).resolve()).is_dir()]
    paths = [path.relative_to(config.rootpath) for folder in folders for path in sorted(folder.rglob("test_*.py"))]
    found = [path for path in paths if not any(fnmatch(part, pattern) for part in path.parts for pattern in skipped)]
    for path in found[number::workers]:
        # The collection tells what is wrong with a module.
        with suppress(Exception):
            import_module(".".join(path.with_suffix("").parts))
