"""The last step of every answer: YAML, indentation and compression, as in Go's API servers."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from adapter.web.http import JSON, YAML
from adapter.web.negotiation import accepts_gzip, served_type, wants_indent
from adapter.web.yaml_text import yaml_of

if TYPE_CHECKING:
    from adapter.web.http import Request, Response

GZIP_FROM_BYTES = 128 * 1024
"""Longer bodies are compressed. For shorter ones compression costs more than it saves, as Go's API servers found."""
GZIP_LEVEL = 1
"""The level of Go's API servers: higher levels cost several times the CPU time and save a tenth of the bytes."""
GZIP_FORMAT = 31
"""The `wbits` value by which zlib writes the gzip format with the largest window."""

MOST_INDENTED_BYTES = 1024 * 1024
"""Longer bodies are never indented: it blocks the interpreter for 4 ms per MiB, and `jq` can do it instead."""


def rendered(response: Response, request: Request) -> Response:
    """Return the response in the form that the client prefers."""
    if response.content_type == JSON and response.body and served_type(request.header("Accept")) == YAML:
        response = replace(response, body=yaml_of(response.body), content_type=YAML, gzipped=None)
    if _is_to_indent(response, request):
        indented = msgspec.json.format(response.body, indent=2) + b"\n"
        response = replace(response, body=indented, gzipped=None)
    if request.method != "GET" or len(response.body) <= GZIP_FROM_BYTES:
        return response
    varied = replace(response, headers=(*response.headers, ("Vary", "Accept-Encoding")))
    if not accepts_gzip(request.header("Accept-Encoding")):
        return varied
    # Compressing does not block other threads: zlib releases the interpreter lock.
    body = response.gzipped or zlib.compress(response.body, GZIP_LEVEL, wbits=GZIP_FORMAT)
    return replace(varied, body=body, headers=(*varied.headers, ("Content-Encoding", "gzip")))


def _is_to_indent(response: Response, request: Request) -> bool:
    return (
        response.content_type.startswith(JSON)
        and 0 < len(response.body) <= MOST_INDENTED_BYTES
        and wants_indent(request.query, request.header("User-Agent"))
    )
