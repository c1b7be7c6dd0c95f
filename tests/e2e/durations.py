"""How long each module of tests takes, so that two workers end at about the same time: the longest begins first.

`durations.json` is a recording of `python -m tests.e2e --record-durations`. It need not be exact, and a module that is
not in it counts as a short one.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

TABLE: Final = Path(__file__).with_name("durations.json")
RECORD: Final = "E2E_RECORD_DURATIONS"
"""The environment variable that asks for a recording."""
UNKNOWN_SECONDS: Final = 20.0


def read_table() -> dict[str, float]:
    """Return the seconds of each module, by its path from the suite's folder."""
    table: dict[str, float] = json.loads(TABLE.read_text())
    return table


def longest_first(modules: list[Path], table: Mapping[str, float]) -> list[int]:
    """Return the indexes of tests, given the module of each: modules stay whole, and the longest comes first."""
    first = {module: index for index, module in reversed(list(enumerate(modules)))}

    def rank(index: int) -> tuple[float, int, int]:
        module = modules[index]
        return -table.get(name_of(module), UNKNOWN_SECONDS), first[module], index

    return sorted(range(len(modules)), key=rank)


def name_of(module: Path) -> str:
    """Return the name of a module in the table."""
    return os.path.relpath(module, TABLE.parent)


class Recorder:
    """Adds up the durations that pytest reports, set-up and tear-down included, and writes the table after the run."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one phase of one test."""
        self._seconds[name_of(self._root / report.nodeid.partition("::")[0])] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the table; modules that did not run keep their entries, and deleted modules lose theirs."""
        measured = {name: round(seconds, 1) for name, seconds in self._seconds.items()}
        table = {name: seconds for name, seconds in (read_table() | measured).items() if (TABLE.parent / name).exists()}
        TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n")


def is_asked_for() -> bool:
    """Return whether a recording is requested."""
    return bool(os.environ.get(RECORD))
