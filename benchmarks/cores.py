"""Shares out the cores: the measured process has a core for itself, and everything around it uses the others."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Cores:
    """The same core twice on a machine with one: figures of processes that compete are worth little."""

    measured: frozenset[int]
    others: frozenset[int]

    @classmethod
    def of_this_machine(cls) -> Cores:
        """Share out the cores that this process may use."""
        first, *rest = sorted(os.sched_getaffinity(0))
        return cls(frozenset({first}), frozenset(rest or {first}))


@contextmanager
def on(cores: frozenset[int]) -> Iterator[None]:
    """Let this thread, and what it starts meanwhile, run on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
