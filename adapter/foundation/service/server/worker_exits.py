"""Counts workers that a signal ended. The arbiter counts, since it outlives them; the next worker exposes the counts.

A crash of native code (SIGSEGV), the kernel when memory runs out (SIGKILL), and the arbiter itself, for a worker
without a sign of life (SIGABRT), all end a worker like this.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import TYPE_CHECKING

import prometheus_client

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import CollectorRegistry

OTHER = "other"
SIGNALS = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGKILL", "SIGSEGV", "SIGTERM", OTHER)
"""Values of the label. All of them are exposed from the start, since `increase` needs the 0 before the first exit."""


class WorkerExits:
    """The number of workers that each signal has ended. A worker inherits these counts with the fork."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self.any_ended = False
        """Whether a worker has ended, by a signal or not, so that the next one takes its place."""

    def note(self, workers: Iterable[int]) -> None:
        """Count those of the workers that a signal has ended and that have not been reaped yet."""
        for pid in workers:
            try:
                ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                continue
            self.any_ended |= ended is not None
            if ended is not None and ended.si_code in {os.CLD_KILLED, os.CLD_DUMPED}:
                self._counts[_name(ended.si_status)] += 1

    def expose(self, registry: CollectorRegistry, prefix: str) -> None:
        """Register `PREFIX_worker_exits_total` with the current counts, which do not change while a worker lives."""
        exits = prometheus_client.Counter(
            f"{prefix}_worker_exits",
            "Workers that a signal ended since the start of the process, by signal; each was replaced.",
            ("signal",),
            registry=registry,
        )
        for name in SIGNALS:
            exits.labels(name).inc(self._counts[name])


def _name(number: int) -> str:
    name = signal.Signals(number).name if number in signal.valid_signals() and number < signal.SIGRTMIN else OTHER
    return name if name in SIGNALS else OTHER
