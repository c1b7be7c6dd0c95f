"""Ends of commands by a signal: Ctrl-C and SIGTERM, while modules are loaded and while a command runs.

This is the first module of each program, so it imports little.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT
"""The exit status that a shell reports for a program that was ended by SIGINT."""
TERMINATED = 128 + signal.SIGTERM
"""The exit status that a shell reports for a program that was ended by SIGTERM."""
LONGEST_END_SECONDS = 5.0
"""The time from Ctrl-C until a command that has not ended is ended without cleaning up."""


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


def raise_at_interrupt(program: str) -> None:
    """Let Ctrl-C raise KeyboardInterrupt, after `end_at_signals`, and end the process LONGEST_END_SECONDS later."""
    if _replaced:
        _handle(signal.SIGINT, partial(_interrupt, program))


def run_until_interrupted(program: str, run: Callable[[], None]) -> None:
    """Run a program; at Ctrl-C it ends with one line on stderr and INTERRUPTED."""
    try:
        try:
            run()
        finally:
            # What called the program in its own process goes on, and may have to end in order.
            while _replaced:
                _handle(signal.SIGINT, _replaced.pop())
    except KeyboardInterrupt:
        # Threads that wait for a server may delay the exit; another Ctrl-C ends the process at once.
        _end_at_interrupt()
        _handle(signal.SIGALRM, _exit_interrupted)
        print(_line(program), end="", file=sys.stderr)  # noqa: T201 - the one line
        sys.exit(INTERRUPTED)


def _interrupt(program: str, *_: object) -> NoReturn:
    """Raise KeyboardInterrupt, and see to it that the process ends.

    It is raised anywhere, so a library may have taken a lock that it no longer releases, and what cleans up then waits
    for that lock for ever. Python drops it in a finalizer.
    """
    _replaced.clear()
    _end_at_interrupt()
    signal.signal(signal.SIGALRM, partial(_give_up, program))
    signal.setitimer(signal.ITIMER_REAL, LONGEST_END_SECONDS)
    raise KeyboardInterrupt


def _give_up(program: str, *_: object) -> NoReturn:
    """End this process, which has not ended in time after Ctrl-C."""
    with suppress(OSError):
        os.write(2, _line(program).encode())
    os._exit(INTERRUPTED)


def _line(program: str) -> str:
    return f"{program}: interrupted\n"


def _end_at_interrupt() -> None:
    """Let the kernel end this process at Ctrl-C; it does not deliver to process 1 what that has no handler for."""
    _handle(signal.SIGINT, _exit_interrupted if os.getpid() == 1 else signal.SIG_DFL)


def _exit_interrupted(*_: object) -> None:
    os._exit(INTERRUPTED)


def _handle(number: signal.Signals, handler: Callable[..., object] | signal.Handlers) -> None:
    """Set a handler. Only the main thread can: a command line that runs in another leaves the handlers as they are."""
    with suppress(ValueError):
        signal.signal(number, handler)
