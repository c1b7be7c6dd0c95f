"""The port of `proportional`, which answers before the rest of the program is loaded.

With the few hundredths of a core that manifests of cluster-proportional-autoscaler grant, loading takes longer
than the kubelet waits for a first answer, so what answers it is loaded first.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.server.addresses import address_of
from adapter.foundation.service.server.plain import HEALTH_AND_METRICS, PlainAnswer, PlainServer

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

_log = logging.getLogger(__name__)

LAST_POLL = "/last-poll"
_STARTING = "the program is still loading\n"


class Port:
    """Serves `/healthz` at once, and everything else when it is there."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._answer: Callable[[str, str], PlainAnswer | None] = _while_starting
        self._server = PlainServer(
            listener, self._answer_of_page, paths=lambda: ("/healthz", LAST_POLL, *HEALTH_AND_METRICS)
        )

    def start(self) -> None:
        """Start to serve."""
        self._server.start()
        _log.info("metrics and health are served", extra=fields(address=str(address_of(self._listener))))

    def use(self, answer: Callable[[str, str], PlainAnswer | None]) -> None:
        """Answer all paths but `/healthz` by this function from now on."""
        self._answer = answer

    def stop(self) -> None:
        """Stop serving."""
        self._server.stop()
        self._listener.close()

    def _answer_of_page(self, path: str, query: str) -> PlainAnswer | None:
        # As of the peer: a process that answers is healthy.
        return PlainAnswer(200, b"ok\n") if path == "/healthz" else self._answer(path, query)


def _while_starting(path: str, _query: str) -> PlainAnswer | None:
    if path == LAST_POLL or path.startswith("/livez"):
        # No poll has failed yet.
        return PlainAnswer(200, b"ok\n")
    return PlainAnswer(503, _STARTING.encode()) if path in HEALTH_AND_METRICS else None
