"""Runs the doctor's checks concurrently, so that none can delay or break another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapter.foundation.reports.lines import Line, unknown

CHECK_SECONDS = 20.0
"""Time limit for all checks together; their requests have shorter deadlines."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check to run."""

    name: str
    look: Callable[[], Sequence[Line]]


def run_checks(checks: Sequence[Check], seconds: float = CHECK_SECONDS) -> list[Line]:
    """Return the lines of all checks in their order; for a check that does not end in time, a line says so."""
    runs = [_Run(check) for check in checks]
    end = time.monotonic() + seconds
    for run in runs:
        run.thread.join(max(0.0, end - time.monotonic()))
    return [line for run in runs for line in run.lines(seconds)]


class _Run:
    """One check that is running."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._found: Sequence[Line] | None = None
        # A daemon thread, because a check that hangs must not keep the program from exiting.
        self.thread = threading.Thread(target=self._look, name=check.name, daemon=True)
        self.thread.start()

    def _look(self) -> None:
        try:
            self._found = self._check.look()
        except Exception as e:  # noqa: BLE001 - the supervisor: whatever one check meets, the others go on
            fault = f"the check itself failed: {type(e).__name__}"
            self._found = (unknown(self._check.name, fault, "report this as a bug"),)

    def lines(self, seconds: float) -> Sequence[Line]:
        if self._found is not None:
            return self._found
        fix = "check whether the server that it asks answers at all, and try again"
        return (unknown(self._check.name, f"no answer within {seconds:g} s", fix),)
