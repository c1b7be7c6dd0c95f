"""Requests and responses as plain values, independent of any framework.

A request is kept as it came over the wire. Paths stay percent-encoded, because `%2F` inside a segment is not a slash.
Headers stay one entry per line, because values that were joined by commas cannot be separated again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

JSON = "application/json"
YAML = "application/yaml"
TEXT = "text/plain; charset=utf-8"
NOT_CACHED = "no-cache, private"
"""The `Cache-Control` that Kubernetes API servers send with everything that must not be cached."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request."""

    method: str
    path: str
    """The path of the request, still percent-encoded."""
    query: str = ""
    """Still percent-encoded, without the question mark."""
    headers: tuple[tuple[str, str], ...] = ()
    """Name and value of each header line, in order."""
    peer_chain: tuple[bytes, ...] = ()
    """Verified client certificate chain in DER, leaf first; empty if there is none."""
    body: bytes | bytearray = b""
    """The whole body, which nobody may change; empty if the route accepts none."""
    path_values: Mapping[str, str] = field(default_factory=dict)
    """Values of the variables in the route's path rule, still percent-encoded."""

    def header(self, name: str) -> str:
        """Return the values of a header, joined by commas as HTTP allows for lists; empty if the header is absent."""
        wanted = name.lower()
        return ", ".join(value for found, value in self.headers if found.lower() == wanted)


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP response. Its `headers` leave out `Content-Type`, `Content-Length` and `Cache-Control`."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    cache_control: str = NOT_CACHED
    gzipped: bytes | None = None
    """The same body compressed by gzip, if it was prepared in advance."""


class RefusedRequestError(Exception):
    """A request is refused before a handler sees it. `allow` lists the methods that a 405 has to name."""

    def __init__(self, status: int, message: str, *, allow: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.allow = tuple(allow)


def json_line(value: object) -> bytes:
    """Return the value as JSON and a newline, as Go's encoder writes it; `kubectl get --raw` prints it as it is."""
    return msgspec.json.encode(value) + b"\n"
