"""Divides the cores: the measured process has a core for itself, and everything around it uses the others."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Cores:
    """The cores of the measured process and of all others.

    On a machine with one core they are the same, and figures of processes that compete are worth little.
    """

    measured: frozenset[int]
    others: frozenset[int]

    @classmethod
    def of_this_machine(cls) -> Cores:
        """Divide the cores that this process may use."""
        first, *rest = sorted(os.sched_getaffinity(0))
        return cls(frozenset({first}), frozenset(rest or {first}))


@contextmanager
def on(cores: frozenset[int]) -> Iterator[None]:
    """Let this thread, and what it starts in the block, run on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
