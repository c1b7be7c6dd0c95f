"""Cases of Cluster Autoscaler: inputs and expected outputs, as numbers with their source.

`cases.json` holds all of them; each states the file and the test that it is taken from.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

_FILE: Final = Path(__file__).with_name("cases.json")


class Case(msgspec.Struct, frozen=True):
    id: str
    kind: str
    input: dict[str, Any]
    expected: dict[str, Any]
    source: str
    note: str = ""
    derived: bool = False
    """Whether it follows from the code that the source names, and is not a row of a table there."""


class _Cases(msgspec.Struct, frozen=True):
    cases: list[Case]


def cases(kind: str) -> list[Any]:
    """Return the cases of a kind as parameters of a test, with their identifiers."""
    found = [pytest.param(case, id=case.id) for case in all_cases() if case.kind == kind]
    if not found:
        raise LookupError(f"{_FILE.name} has no case of the kind {kind!r}")
    return found


@cache
def all_cases() -> tuple[Case, ...]:
    return tuple(msgspec.json.decode(_FILE.read_bytes(), type=_Cases).cases)
