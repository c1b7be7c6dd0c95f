"""The last step of every answer: YAML, indentation and compression, as in Go's API servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from adapter.foundation.files.gzip_format import compress
from adapter.foundation.web.http import JSON, YAML, Request, Response
from adapter.foundation.web.negotiation import accepts_gzip, served_type, wants_indent

GZIP_FROM_BYTES = 128 * 1024
"""Longer bodies are compressed, as in Go's API servers; for shorter ones, compression costs more than it saves."""
MOST_INDENTED_BYTES = 1024 * 1024
"""Longer bodies are never indented: it blocks the interpreter for 4 ms per MiB, and `jq` can do it instead."""


def compressed_in_advance(body: bytes) -> bytes | None:
    """Return the body in the gzip format; None if it is too short to be worth it."""
    return compress(body) if len(body) > GZIP_FROM_BYTES else None


def render_response(response: Response, request: Request) -> Response:
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
    body = response.gzipped or compress(response.body)
    return replace(varied, body=body, headers=(*varied.headers, ("Content-Encoding", "gzip")))


def _is_to_indent(response: Response, request: Request) -> bool:
    return (
        response.content_type.startswith(JSON)
        and 0 < len(response.body) <= MOST_INDENTED_BYTES
        and wants_indent(request.query, request.header("User-Agent"))
    )


MOST_YAML_BYTES = 32 * 1024
"""Longer documents stay JSON: writing block style takes about 0.3 s per MiB, and blocks all other requests."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
"""Keys that need no quotes, unless they are words that YAML reads as something other than text."""
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON accepts as they are and YAML only when escaped."""
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def yaml_of(document: bytes) -> bytes:
    """Return a JSON document as YAML (1.1 and 1.2) in block style; a long one stays JSON, which is valid YAML."""
    if len(document) > MOST_YAML_BYTES:
        return document
    return ("\n".join(_lines(msgspec.json.decode(document), "")) + "\n").encode()


def _lines(value: object, indent: str) -> Iterator[str]:
    """Yield the lines of a value."""
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _entry(f"{indent}{_key(key)}:", one, indent)
    elif isinstance(value, list) and value:
        for one in value:
            first, *rest = _lines(one, f"{indent}  ")
            yield f"{indent}- {first[len(indent) + 2 :]}"
            yield from rest
    else:
        yield f"{indent}{_scalar(value)}"


def _entry(head: str, value: object, indent: str) -> Iterator[str]:
    if not value or not isinstance(value, dict | list):
        yield f"{head} {_scalar(value)}"
        return
    yield head
    yield from _lines(value, indent if isinstance(value, list) else f"{indent}  ")


def _key(key: str) -> str:
    return key if _PLAIN.fullmatch(key) and key.lower() not in _WORDS else _scalar(key)


def _scalar(value: object) -> str:
    """Return a quoted text, number, word, or empty list or mapping as JSON writes it; YAML reads it the same way."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(value).decode())
