"""Output of programs whose reader may stop early, as in `PROGRAM --help | head -1`."""

from __future__ import annotations

import os
import select
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

READER_GONE = 128 + 13
"""The exit status that a shell reports for a program that was ended by SIGPIPE."""


def run_until_nobody_reads(run: Callable[[], None]) -> None:
    """Run a program; exit silently with READER_GONE if the reader closes its stdout.

    The signal itself stays ignored, as Python sets it: it would also end a program whose connection to a server breaks.
    """
    try:
        try:
            run()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        # The interpreter flushes stdout once more when it exits, and would print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(READER_GONE)


def _reader_is_gone() -> bool:
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))
