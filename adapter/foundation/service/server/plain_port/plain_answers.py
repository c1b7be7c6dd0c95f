"""Answers requests on the plain port, from memory."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.files.gzip_format import text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.foundation.service.server.plain_port.paced_text import Pieces
    from adapter.foundation.service.server.plain_port.plain_connections import PlainConnection

_log = logging.getLogger(__name__)

HEALTH_AND_METRICS = ("/metrics", "/livez", "/readyz")
"""Paths that every program serves."""


@dataclass(frozen=True, slots=True)
class PlainAnswer:
    """Status, body and content type of an answer."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()
    """Headers in addition to those that every answer has."""
    further: Pieces = ()
    """Further pieces of the body, after `body`."""

    def head(self) -> bytes:
        """Return the status line and the headers."""
        more_headers = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        head = (
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}\r\nContent-Type: {self.content_type}\r\n"
            f"X-Content-Type-Options: nosniff\r\nConnection: close\r\n{more_headers}"
            f"Content-Length: {text_bytes((self.body, *self.further))}\r\n\r\n"
        )
        return head.encode("latin-1")


Answer: TypeAlias = "Callable[[str, str], PlainAnswer | None]"
"""Returns the answer for a path and a query, or None if the path is unknown. Never waits."""


class PlainAnswers:
    """Answers requests by their heads."""

    def __init__(
        self,
        answer: Answer,
        paths: Callable[[], Sequence[str]],
        allows_host: Callable[[str], bool],
        *,
        leaves_out_metrics: bool,
    ) -> None:
        self._answer = answer
        self._paths = paths
        self._allows_host = allows_host
        self._leaves_out_metrics = leaves_out_metrics

    def to(self, connection: PlainConnection) -> PlainAnswer | None:
        """Return the answer; None for the metrics if another thread builds them."""
        parts = bytes(connection.inbox).split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1.") or not parts[1].startswith("/"):
            return PlainAnswer(400, b"this is not an HTTP request\n")
        method, target, _ = parts
        connection.wants_body = method != "HEAD"
        if method not in {"GET", "HEAD"}:
            return PlainAnswer(405, b"only GET and HEAD are allowed here\n", headers=(("Allow", "GET, HEAD"),))
        if not all(map(self._allows_host, _hosts_of(bytes(connection.inbox)))):
            return PlainAnswer(421, b"this server is not known by that name\n")
        path, _, query = target.partition("?")
        if path == "/metrics" and self._leaves_out_metrics:
            return None
        try:
            return self._answer(path, query) or self._not_found()
        except Exception:  # noqa: BLE001 - the loop: one answer that fails must not end metrics and health
            _log.exception("%s could not be answered", path)
            return PlainAnswer(500, b"internal error\n")

    def _not_found(self) -> PlainAnswer:
        *others, last = self._paths()
        return PlainAnswer(404, f"there are {', '.join(others)} and {last} here\n".encode())


def _hosts_of(head: bytes) -> list[str]:
    """Return the values of the header Host."""
    lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return [value.decode("latin-1").strip() for name, _, value in lines if name.strip().lower() == b"host"]
