"""What programs print, when whoever reads it has seen enough: `tidewatch-adapter check --help | head -1`."""

from __future__ import annotations

import os
import select
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

READER_GONE = 128 + 13
"""The exit status that a shell shows of a program which SIGPIPE has ended."""


def run_until_nobody_reads(run: Callable[[], None]) -> None:
    """Run a program; exit with READER_GONE and without a word where its stdout is closed by the other side.

    The signal itself stays ignored, as Python has it: it would also end a program whose connection to a server breaks.
    """
    try:
        try:
            run()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        # The interpreter flushes stdout once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(READER_GONE)


def _reader_is_gone() -> bool:
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))
