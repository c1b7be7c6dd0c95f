"""Answers that the server sends without the application, and after which it closes the connection."""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

from gunicorn.http import errors as http_errors

_STATUS_OF: dict[type[Exception], tuple[int, str]] = {
    http_errors.LimitRequestLine: (414, "URI Too Long"),
    http_errors.LimitRequestHeaders: (431, "Request Header Fields Too Large"),
    http_errors.ExpectationFailed: (417, "Expectation Failed"),
    http_errors.UnsupportedTransferCoding: (501, "Not Implemented"),
}


def parse_refusal(error: http_errors.ParseException) -> bytes:
    """Return the answer to a malformed request."""
    return final_answer(*_STATUS_OF.get(type(error), (400, "Bad Request")), str(error))


def final_answer(status: int, phrase: str, message: str) -> bytes:
    """Return a complete HTTP response in plain text that announces the end of the connection."""
    body = f"{message}\n".encode()
    head = (
        f"HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("latin-1") + body
