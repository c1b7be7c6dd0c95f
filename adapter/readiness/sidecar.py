"""The process: one task that reads the metric, one thread that answers probes, and the wait for the end."""

from __future__ import annotations

import logging
import signal
from typing import TYPE_CHECKING

from adapter.readiness.answers import sidecar_answer
from adapter.service.runtime.logs import fields
from adapter.service.runtime.tasks import Tasks
from adapter.service.server.addresses import address_of, listening_socket
from adapter.service.server.plain import PlainServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.readiness.board import ReadinessBoard
    from adapter.service.server.addresses import Address

_log = logging.getLogger(__name__)

EVERY_SECONDS = 1.0
"""Time from the start of one read to the start of the next, whatever the number of probes."""
READ_SECONDS = 0.8
"""Deadline of a read."""
_ENDINGS = (signal.SIGTERM, signal.SIGINT)


def hold_endings() -> None:
    """Keep SIGTERM and SIGINT for `run_sidecar`. Call it before anything is logged: threads inherit what is blocked."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)


def run_sidecar(address: Address, board: ReadinessBoard, read: Callable[[], float]) -> None:
    """Answer probes until SIGTERM or SIGINT arrives, which `hold_endings` has blocked; raises StartError."""
    listener = listening_socket(address)
    tasks = Tasks(board)
    tasks.periodic("metric", lambda: board.update(read), every_seconds=EVERY_SECONDS, deadline_seconds=EVERY_SECONDS)
    # A sidecar that restarts in a full pod must not begin by saying ready. Probes wait in the listener's queue.
    board.wait_for_first_read(EVERY_SECONDS)
    server = PlainServer(listener, lambda path, _: sidecar_answer(board, path))
    server.start()
    _log.info("probes are answered", extra=fields(address=address_of(listener)))
    arrived = signal.sigwait(_ENDINGS)
    _log.info("shutting down", extra=fields(signal=signal.Signals(arrived).name))
    board.stop()
    server.stop()
    tasks.stop(READ_SECONDS)
    listener.close()
