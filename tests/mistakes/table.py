"""A row of the tables of mistakes: what a user wrote or did, and what the program must say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Mistake:
    """One user mistake, and what the program says about it."""

    name: str
    command: str
    """The command line without the program, as typed into a shell; `{name}` stands for a file or server of the test."""
    place: str
    """The place that the message names: file and line, flag or variable, URL."""
    cause: str
    repair: str
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """Contents of files in the working folder, by name."""
    status: int = 2
    environment: Mapping[str, str] = field(default_factory=dict)
