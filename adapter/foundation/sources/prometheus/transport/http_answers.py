"""Requests to a server and their answers, whose bodies are read piece by piece."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.foundation.files.gzip_format import GzipError, gunzipped_pieces
from adapter.foundation.sources.deadlines import PIECE_BYTES, Deadline
from adapter.foundation.sources.prometheus.transport.answer_memory import AnswerMemory, ReceivedBody
from adapter.foundation.sources.secrets import NO_SECRETS, Secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from urllib3.response import BaseHTTPResponse


_ERROR_BYTES = PIECE_BYTES


class BodyTooLargeError(Exception):
    """The body has more bytes than the request allows."""


class BodyUnreadableError(Exception):
    """The compression of the body is broken or unknown."""


def watch_nothing(_body: bytearray) -> None:
    """Accept any answer, whatever its content."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request, and the limit of its answer."""

    method: str
    target: str
    """Path and query of the URL."""
    headers: dict[str, str] = field(repr=False)
    body: bytes | None
    max_bytes: int
    """Largest body of the answer after decompression."""
    watch: Callable[[bytearray], None] = watch_nothing
    """Called with the body after each piece; ends the request by raising an error."""
    secrets: Secrets = field(default=NO_SECRETS, repr=False)
    """The values that must be hidden if the answer repeats the request."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole answer, without the secrets of its request."""

    status: int
    headers: dict[str, str] = field(repr=False)
    """Headers, with names in lower case."""
    body: bytearray = field(repr=False)


class OpenAnswer:
    """An answer whose head has been read, and whose body is read by iterating over it, once.

    Its body is without the secrets of the request.
    """

    def __init__(
        self, response: BaseHTTPResponse, request: HttpRequest, memory: AnswerMemory, deadline: Deadline
    ) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        """Headers, with names in lower case."""
        self.is_read = False
        """Whether the body has been read to its end."""
        self._pieces = request.secrets.hidden_in_pieces(_pieces(response))
        self._request = request
        self._memory = memory
        self._deadline = deadline

    def __iter__(self) -> Iterator[bytes]:
        """Yield the body, decompressed, in pieces of at most 64 KiB. Raises what `Transport.open_answer` raises."""
        size = 0
        for piece in self._pieces:
            size += len(piece)
            if size > self._request.max_bytes:
                raise BodyTooLargeError(f"the answer has more than {self._request.max_bytes:,} bytes")
            yield piece
        self.is_read = True

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def read_beginning(self) -> HttpAnswer:
        """Read only as much of the body as an error message needs. Raises what `Transport.open_answer` raises."""
        body = bytearray()
        for piece in self:
            body += piece
            if len(body) >= _ERROR_BYTES:
                break
        return self._without_secrets(body)

    def whole(self) -> HttpAnswer:
        """Read the body to its end; large bodies wait for each other. Raises what `Transport.open_answer` raises."""
        body = ReceivedBody()
        with self._memory.receiving(body):
            for piece in self:
                body += piece
                self._request.watch(body)
                self._memory.wait_to_grow(body, self._deadline)
        return self._without_secrets(body)

    def _without_secrets(self, body: bytearray) -> HttpAnswer:
        if self.is_success:
            return HttpAnswer(self.status, self.headers, body)
        # The words of a failure are shown to all who ask for a metric.
        hidden = self._request.secrets.hidden_in
        headers = {name: hidden(value.encode()).decode(errors="replace") for name, value in self.headers.items()}
        return HttpAnswer(self.status, headers, bytearray(hidden(bytes(body))))


def _pieces(response: BaseHTTPResponse) -> Iterator[bytes]:
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding == "gzip":
        return _gunzip_pieces(_raw_pieces(response))
    if encoding in {"", "identity"}:
        return _raw_pieces(response)
    raise BodyUnreadableError(f"the answer is encoded as {encoding!r}, which was not requested")


def _raw_pieces(response: BaseHTTPResponse) -> Iterator[bytes]:
    while piece := response.read1(PIECE_BYTES, decode_content=False):
        yield piece


def _gunzip_pieces(pieces: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from gunzipped_pieces(pieces, PIECE_BYTES)
    except GzipError as e:
        raise BodyUnreadableError(f"the compression of the answer is broken: {e}") from e
