"""The port of a drop-in, which answers before the rest of the program is loaded.

The manifests of cluster-proportional-autoscaler grant a few hundredths of a core. With so little, loading takes longer
than the kubelet waits for a first answer, so the part that answers the kubelet is loaded first.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.server.addresses import address_of
from adapter.foundation.service.server.plain_port.plain_answers import HEALTH_AND_METRICS, PlainAnswer
from adapter.foundation.service.server.plain_port.plain_server import PlainServer

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

_log = logging.getLogger(__name__)

LAST_POLL = "/last-poll"
_HEALTH = "/healthz"
_STARTING = "the program is still loading\n"


class Port:
    """Answers liveness checks at once, and all other paths once the program is loaded, on any number of addresses."""

    def __init__(self, *listeners: socket.socket, liveness: str = "") -> None:
        """`liveness` is a further path, which reports success while the program is loading."""
        self._listeners = listeners
        self._liveness = liveness
        self._answer: Callable[[str, str], PlainAnswer | None] = self._while_starting
        own = (liveness,) if liveness else ()
        self._servers = [
            PlainServer(listener, self._answer_of_page, paths=lambda: (_HEALTH, LAST_POLL, *own, *HEALTH_AND_METRICS))
            for listener in listeners
        ]

    def start(self) -> None:
        """Start serving."""
        for server, listener in zip(self._servers, self._listeners, strict=True):
            server.start()
            _log.info("metrics and health are served", extra=fields(address=str(address_of(listener))))

    def use(self, answer: Callable[[str, str], PlainAnswer | None]) -> None:
        """Answer all paths except `/healthz` with this function from now on."""
        self._answer = answer

    def stop(self) -> None:
        """Stop serving."""
        for server, listener in zip(self._servers, self._listeners, strict=True):
            server.stop()
            listener.close()

    def _answer_of_page(self, path: str, query: str) -> PlainAnswer | None:
        # As in the original program, a process that answers is healthy.
        return PlainAnswer(200, b"ok\n") if path == _HEALTH else self._answer(path, query)

    def _while_starting(self, path: str, _query: str) -> PlainAnswer | None:
        if path in {LAST_POLL, self._liveness} or path.startswith("/livez"):
            # No poll has failed yet.
            return PlainAnswer(200, b"ok\n")
        return PlainAnswer(503, _STARTING.encode()) if path in HEALTH_AND_METRICS else None
