"""The page and its API, if `--port` or `--bind-address` requests them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.server.addresses import address_of
from adapter.foundation.service.server.plain_port.plain_answers import PlainAnswer
from adapter.foundation.service.server.plain_port.plain_server import PlainServer
from adapter.foundation.service.version import program_version
from adapter.foundation.web.http import Request
from recommender.page.handler import PageHandler
from recommender.running.history.history_cache import HistoryCache

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.web.allowed_hosts import AllowedHosts
    from recommender.commands.one_process.process import OneProcess
    from recommender.decisions.publication import Publication

_log = logging.getLogger(__name__)


class Page:
    """The page on a port of its own, with the decisions of the last day."""

    def __init__(self, listener: socket.socket, hosts: AllowedHosts, state: Path, process: OneProcess) -> None:
        """`hosts` are the host names under which the page may be requested; `state` is the folder of the history."""
        self._hosts = hosts
        self._listener = listener
        self._process = process
        self.history = HistoryCache(state / "history.sqlite", lambda: None)

    def start(self, latest: Callable[[], Publication]) -> None:
        """Serve the page, with the decisions in force that `latest` returns, until the process ends."""
        handler = PageHandler(latest, self.history.read, program_version())
        routes = {route.path: route for route in handler.routes()}

        def answer(path: str, query: str) -> PlainAnswer:
            request = Request("GET", path, query)
            route = routes.get(path)
            response = handler.not_found(request) if route is None else route.handle(request)
            # Every answer of the plain server already has this header.
            others = [pair for pair in response.headers if pair[0] != "X-Content-Type-Options"]
            headers = (*others, ("Cache-Control", response.cache_control))
            return PlainAnswer(response.status, response.body, response.content_type, headers)

        server = PlainServer(self._listener, answer, paths=lambda: tuple(routes), allows_host=self._hosts.allows)
        self._process.tasks.running("history", self.history.run, reads_only=True)
        self._process.on_stopping(server.stop)
        server.start()
        _log.info("serving", extra=fields(address=f"http://{address_of(self._listener)}"))
