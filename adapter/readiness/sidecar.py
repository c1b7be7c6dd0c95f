"""Runs the sidecar: a task reads the metric, and a thread answers probes until a signal ends the process."""

from __future__ import annotations

import logging
import signal
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.runtime.tasks import Tasks
from adapter.foundation.service.server.addresses import Address, address_of, listening_socket
from adapter.foundation.service.server.plain_port.plain_answers import PlainAnswer
from adapter.foundation.service.server.plain_port.plain_server import PlainServer
from adapter.foundation.web.metric_text import METRICS_TYPE, family, label, sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.readiness.sidecar_state import SidecarState

_log = logging.getLogger(__name__)

EVERY_SECONDS = 1.0
"""The time from the start of one read to the start of the next, whatever the number of probes."""
READ_SECONDS = 0.8
"""The time limit of one read."""
_ENDINGS = (signal.SIGTERM, signal.SIGINT)


def hold_endings() -> None:
    """Block SIGTERM and SIGINT, so that `run_sidecar` can wait for them.

    Call this function before anything is logged, so that all threads inherit the blocked signals.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)


def run_sidecar(address: Address, state: SidecarState, read: Callable[[], float]) -> None:
    """Answer probes until SIGTERM or SIGINT arrives. Raises StartError if the port cannot be opened.

    `hold_endings` must have blocked these signals before.
    """
    listener = listening_socket(address)
    tasks = Tasks(state)
    tasks.periodic("metric", lambda: state.update(read), every_seconds=EVERY_SECONDS, deadline_seconds=EVERY_SECONDS)
    # A sidecar that restarts in a full pod must not first report that it is ready. Probes wait in the listener's queue.
    state.wait_for_first_read(EVERY_SECONDS)
    server = PlainServer(listener, lambda path, _: sidecar_answer(state, path))
    server.start()
    _log.info("probes are answered", extra=fields(address=address_of(listener)))
    arrived = signal.sigwait(_ENDINGS)
    _log.info("shutting down", extra=fields(signal=signal.Signals(arrived).name))
    state.stop()
    server.stop()
    tasks.stop(READ_SECONDS)
    listener.close()


_READS: Final = "tidewatch_readiness_reads_total"


def sidecar_answer(state: SidecarState, path: str) -> PlainAnswer:
    """Return the answer to a path. Every path other than `/livez` and `/metrics` is a readiness probe."""
    if path == "/livez":
        return PlainAnswer(200, b"ok\n")
    if path == "/metrics":
        return PlainAnswer(200, own_metrics(state).encode(), METRICS_TYPE)
    verdict = state.verdict()
    return PlainAnswer(200 if verdict.is_ready else 503, f"{verdict.reason}\n".encode())


def own_metrics(state: SidecarState) -> str:
    """Return the metrics of the sidecar in the text format of Prometheus, without the load if it is unknown."""
    verdict, limit = state.verdict(), state.rules.limit
    reads = (sample(_READS, label("result", name), count) for name, count in state.reads().items())
    return "".join(
        (
            _gauge("ready", "1 if the probe says ready, otherwise 0.", int(verdict.is_ready)),
            _gauge("connections", "The value behind that; absent while it is unknown.", verdict.connections),
            _gauge("limit", "Connections at which the pod is not ready.", limit.full_at),
            _gauge("resume_below", "Connections below which it is ready again.", limit.resume_below),
            family(_READS, "Reads of the application's metric, by result.", reads, kind="counter"),
        )
    )


def _gauge(name: str, about: str, value: float | None) -> str:
    full_name = f"tidewatch_readiness_{name}"
    return family(full_name, about, () if value is None else (sample(full_name, "", value),))
