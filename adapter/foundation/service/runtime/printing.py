"""Ends of commands by their output: a reader that stops early (as with `| head -1`), and a closed or full stdout."""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from typing import Final, NoReturn

READER_GONE = 128 + 13
"""The exit status that a shell reports for a program that was ended by SIGPIPE."""
CANNOT_WRITE = 2
"""The exit status if the output cannot be written; status 1 would mean that the answer is no."""
_DISK_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of `write` on a full or broken disk, which never occur with sockets."""


def run_until_nobody_reads(program: str, run: Callable[[], None]) -> None:
    """Run a program; exit silently with READER_GONE if the reader closes its stdout.

    SIGPIPE stays ignored, as Python sets it: it would also end a program whose connection to a server breaks.
    On a full disk, the program ends with one line on stderr and CANNOT_WRITE.
    """
    _open_closed_streams()
    if isinstance(sys.stdout, TextIOWrapper):
        # In the encoding of an old locale, a character that it lacks would end the program; stderr does the same.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            run()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        _end(READER_GONE)
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        line = f"{program}: the output cannot be written: {error.strerror}: make room, or write it elsewhere"
        with suppress(OSError):  # stderr may be on the same disk
            print(line, file=sys.stderr, flush=True)  # noqa: T201 - the one line
        _end(CANNOT_WRITE)


def print_reason(program: str, reason: str) -> None:
    """Write the one line on stderr that says why a server cannot start.

    It is a single write, because the thread that writes the log must not come between the line and its end.
    """
    sys.stderr.write(f"{program}: {reason}\n")
    sys.stderr.flush()


def _open_closed_streams() -> None:
    """Open the null device as each standard stream that the parent has closed (`>&-`).

    For a closed stream, Python has None, and the next file or socket would get its descriptor and with it the output.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        null = os.open(os.devnull, os.O_RDWR)
        if null != descriptor:
            os.dup2(null, descriptor)
            os.close(null)
        setattr(sys, name, os.fdopen(descriptor, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))


def _reader_is_gone() -> bool:
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def _end(status: int) -> NoReturn:
    # The interpreter flushes both streams once more when it exits: it would print an error, and exit with status 120.
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(null, stream.fileno())
    sys.exit(status)
