"""Ends of commands by a signal: Ctrl-C and SIGTERM, while modules are loaded and while a command runs.

This is the first module of each program, so it imports little.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

INTERRUPTED = 128 + signal.SIGINT
"""The exit status that a shell reports for a program that was ended by SIGINT."""
TERMINATED = 128 + signal.SIGTERM
"""The exit status that a shell reports for a program that was ended by SIGTERM."""


def end_at_signals() -> None:
    """Let Ctrl-C and SIGTERM end this process at once and silently, also if it is process 1 of a container.

    While modules are loaded, Python would raise KeyboardInterrupt in the middle of one and print a traceback. The
    kernel ends a process that has no handler, but does not deliver such a signal to process 1. Servers replace the
    handlers once they can end in order, and until then they may wait for the API server.
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(TERMINATED))
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in a script's background
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_at_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, after `end_at_signals`."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def run_until_interrupted(program: str, run: Callable[[], None]) -> None:
    """Run a program; at Ctrl-C it ends with one line on stderr and INTERRUPTED."""
    try:
        run()
    except KeyboardInterrupt:
        # Threads that wait for a server may delay the exit; another Ctrl-C ends the process at once.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        print(f"{program}: interrupted", file=sys.stderr)  # noqa: T201 - the one line
        sys.exit(INTERRUPTED)
