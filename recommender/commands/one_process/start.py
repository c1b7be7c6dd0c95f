"""Runs a drop-in, and ensures that its process ends whatever happens."""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from adapter.foundation.options.logs import configure_logs_by
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.service.runtime.heap import settle_heap
from recommender.commands.program import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.foundation.service.flags.table import CommandFlags, FlagValues
    from recommender.commands.one_process.port import Port

_log = logging.getLogger(__name__)

ENDINGS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


def run_drop_in(
    flags: CommandFlags, arguments: Sequence[str], prepare: Callable[[FlagValues], tuple[Port, Callable[[], int]]]
) -> NoReturn:
    """Run the command and end the process. Raises SystemExit only if the flags or --help end it before the start.

    `prepare` returns the port, which is served at once, and a function that loads and starts everything else, and
    returns the exit status. Both functions raise StartError or UsageError if the program cannot start.
    """
    values = flags_or_exit(flags, arguments)
    try:
        port, run = prepare(values)
    except UsageError as error:
        exit_for_usage(PROGRAM, str(error))
    except StartError as error:
        _refuse(str(error))
    _run_to_the_end(values, port, run)


def _run_to_the_end(values: FlagValues, port: Port, run: Callable[[], int]) -> NoReturn:
    """Serve the port, call `run`, and exit with the status that it returns."""
    # Threads inherit blocked signals, so this comes before the first of them.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    settle_heap()
    configure_logs_by(values, queued=True)
    port.start()
    for warning in values.warnings:
        _log.warning("%s", warning)
    try:
        status = run()
    except UsageError as error:
        _refuse(str(error), status=2)
    except StartError as error:
        _refuse(str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, a process that cannot work must not answer that it is well
        _log.debug("the start failed", exc_info=error)
        _refuse(f"cannot start: {type(error).__name__}: {error}")
    # The process ends here, because the interpreter would remove modules from threads that still wait for the API
    # server.
    logging.shutdown()
    os._exit(status)


def _refuse(message: str, status: int = 1) -> NoReturn:
    """End the process with the status and one line on stderr."""
    # One write, because the thread that writes the log must not come between the line and its end.
    sys.stderr.write(f"{PROGRAM}: {message}\n")
    sys.stderr.flush()
    logging.shutdown()
    os._exit(status)
