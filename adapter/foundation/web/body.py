"""Reads the body of a request, within limits on its size and its time.

The server sets the deadline: a read of `wsgi.input` raises TimeoutError once the time for the body is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.web.http import RefusedRequestError

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment


RECEIVED: Final = "tidewatch.body"
"""The key of the WSGI environ under which the server puts a body that it has received in advance."""


def read_body(environ: WSGIEnvironment, largest_bytes: int) -> bytes | bytearray:
    """Return the whole body; empty, without reading anything, if `largest_bytes` is 0.

    Raises RefusedRequestError: 413 for a larger body, 408 for one that does not arrive in time, and 400 for one whose
    connection ends early.
    """
    if largest_bytes == 0:
        return b""
    received: bytearray | None = environ.get(RECEIVED)
    if received is not None:
        return received
    declared = _declared_bytes(environ)
    if declared is not None and declared > largest_bytes:
        raise _too_large(largest_bytes)
    try:
        body: bytes = environ["wsgi.input"].read(largest_bytes + 1 if declared is None else declared)
    except TimeoutError as e:
        raise RefusedRequestError(408, "the request body did not arrive in time: send it without pauses") from e
    except OSError as e:
        raise _incomplete() from e
    if len(body) > largest_bytes:
        raise _too_large(largest_bytes)
    # A server returns what it has when the connection ends, and a part of a document may look like a complete one.
    if declared is not None and len(body) < declared:
        raise _incomplete()
    return body


def _declared_bytes(environ: WSGIEnvironment) -> int | None:
    """Return the `Content-Length`; None for a chunked body, and 0 if there is no body."""
    if environ.get("HTTP_TRANSFER_ENCODING"):
        return None
    length = environ.get("CONTENT_LENGTH") or "0"
    if not (length.isascii() and length.isdigit()):
        raise RefusedRequestError(400, "the header Content-Length is not a number")
    return int(length)


def _too_large(largest_bytes: int) -> RefusedRequestError:
    return RefusedRequestError(413, f"the request body is too large: at most {largest_bytes} bytes are accepted here")


def _incomplete() -> RefusedRequestError:
    return RefusedRequestError(400, "the connection ended before the request body was complete")
