"""The last step of every answer: as YAML or indented where asked for, compressed where long, as Go's API servers do."""

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
"""Longer bodies are compressed: below, Go's API servers found it to cost more than it saves."""
GZIP_LEVEL = 1
"""As theirs: higher levels cost several times the processor time for a tenth of the bytes."""
GZIP_FORMAT = 31
"""zlib's name for a gzip header and trailer around the largest window."""

MOST_INDENTED_BYTES = 1024 * 1024
"""Longer bodies are never indented: that holds the interpreter for all, 4 ms a MiB, and `jq` does it as well."""


def rendered(response: Response, request: Request) -> Response:
    """Return the response in the form that its asker would like."""
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
    # Both of a prepared body and of one that is compressed now the interpreter is free meanwhile: zlib lets go of it.
    body = response.gzipped or zlib.compress(response.body, GZIP_LEVEL, wbits=GZIP_FORMAT)
    return replace(varied, body=body, headers=(*varied.headers, ("Content-Encoding", "gzip")))


def _is_to_indent(response: Response, request: Request) -> bool:
    return (
        response.content_type.startswith(JSON)
        and 0 < len(response.body) <= MOST_INDENTED_BYTES
        and wants_indent(request.query, request.header("User-Agent"))
    )
