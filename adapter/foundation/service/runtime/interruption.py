"""Ctrl-C in a command that is not a server ends it with one line and the usual exit status, without a traceback."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

INTERRUPTED = 128 + signal.SIGINT
"""The exit status that a shell reports for a program that was ended by SIGINT."""


def run_until_interrupted(program: str, run: Callable[[], None]) -> None:
    """Run a program; at Ctrl-C it ends with one line on stderr and INTERRUPTED."""
    try:
        run()
    except KeyboardInterrupt:
        # Threads that wait for a server may delay the exit; another Ctrl-C ends the process at once.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        print(f"{program}: interrupted", file=sys.stderr)  # noqa: T201 - the one line
        sys.exit(INTERRUPTED)
