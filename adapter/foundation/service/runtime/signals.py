"""Ends of commands by a signal: Ctrl-C and SIGTERM, while modules are loaded and while a command runs.

This is the first module of each program, so it imports little.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

INTERRUPTED = 128 + signal.SIGINT
"""The exit status that a shell reports for a program that was ended by SIGINT."""
TERMINATED = 128 + signal.SIGTERM
"""The exit status that a shell reports for a program that was ended by SIGTERM."""


_replaced: set[Callable[..., object]] = set()
"""Python's handler of Ctrl-C, while `end_at_signals` has replaced it: what called the program may have another one."""


def end_at_signals() -> None:
    """Let Ctrl-C and SIGTERM end this process at once and silently, also if it is process 1 of a container.

    While modules are loaded, Python would raise KeyboardInterrupt in the middle of one and print a traceback. Servers
    replace the handlers once they can end in order, and until then they may wait for the API server.
    """
    if os.getpid() == 1:
        _handle(signal.SIGTERM, lambda *_: os._exit(TERMINATED))
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in a script's background
        _replaced.add(signal.default_int_handler)
        _end_at_interrupt()


def raise_at_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, after `end_at_signals`."""
    while _replaced:
        _handle(signal.SIGINT, _replaced.pop())


def run_until_interrupted(program: str, run: Callable[[], None]) -> None:
    """Run a program; at Ctrl-C it ends with one line on stderr and INTERRUPTED."""
    try:
        try:
            run()
        finally:
            # What called the program in its own process goes on, and may have to end in order.
            raise_at_interrupt()
    except KeyboardInterrupt:
        # Threads that wait for a server may delay the exit; another Ctrl-C ends the process at once.
        _end_at_interrupt()
        print(f"{program}: interrupted", file=sys.stderr)  # noqa: T201 - the one line
        sys.exit(INTERRUPTED)


def _end_at_interrupt() -> None:
    """Let the kernel end this process at Ctrl-C; it does not deliver to process 1 what that has no handler for."""
    _handle(signal.SIGINT, _exit_interrupted if os.getpid() == 1 else signal.SIG_DFL)


def _exit_interrupted(*_: object) -> None:
    os._exit(INTERRUPTED)


def _handle(number: signal.Signals, handler: Callable[..., object] | signal.Handlers) -> None:
    """Set a handler. Only the main thread can: a command line that runs in another leaves the handlers as they are."""
    with suppress(ValueError):
        signal.signal(number, handler)
