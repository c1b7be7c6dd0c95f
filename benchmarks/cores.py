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


def yield_to_all_others() -> None:
    """Let this process run only while no other one wants its core, as if it were on another machine."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def come_before_all_others() -> None:
    """Let this process, and what it starts, come before all ordinary processes on its core. Raises PermissionError.

    The kernel keeps 5 % of each second for the others, which can show as a pause of 50 ms. Threads of one process take
    turns only when one of them waits, so latencies are at most too long.
    """
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
