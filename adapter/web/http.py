"""Requests and responses without a framework: what a handler is given and what it gives back.

Everything is as it came over the wire. Paths stay encoded, because `%2F` inside a segment is not a slash, and headers
stay one entry a line, because a list that was joined at commas cannot be taken apart again.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

JSON = "application/json"
YAML = "application/yaml"
TEXT = "text/plain; charset=utf-8"
NOT_CACHED = "no-cache, private"
"""What Kubernetes' API servers say of everything that is not meant for caches."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as received."""

    method: str
    path: str
    """Still percent-encoded."""
    query: str = ""
    """Still percent-encoded, without the question mark."""
    headers: tuple[tuple[str, str], ...] = ()
    """Name and value of each header line, in order."""
    peer_chain: tuple[bytes, ...] = ()
    """Verified client certificate chain in DER, leaf first; empty if there is none."""

    def header(self, name: str) -> str:
        """Return the values of the header joined as HTTP allows for lists; empty if it is absent."""
        wanted = name.lower()
        return ", ".join(value for found, value in self.headers if found.lower() == wanted)


@dataclass(frozen=True, slots=True)
class Response:
    """One response; `Content-Type`, `Content-Length` and `Cache-Control` are not among the headers."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    cache_control: str = NOT_CACHED
    gzipped: bytes | None = None
    """The same body compressed, where that was prepared."""


def json_line(value: object) -> bytes:
    """Return the value as JSON and a line's end, as Go's encoder writes it: `kubectl get --raw` shows it as it is."""
    return msgspec.json.encode(value) + b"\n"
