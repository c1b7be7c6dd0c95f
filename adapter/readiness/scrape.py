"""Reads the metric of the application once, within one deadline and with bounded memory.

The application may hang, send a byte now and then, break off, or never stop sending. A broken answer never becomes a
number, but an error that states the reason.
"""

from __future__ import annotations

import http.client
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from adapter.readiness.application_metric import MetricValueError, MissingMetricError, SeriesTotal

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import WriteableBuffer

    from adapter.readiness.selector import SeriesChoice

MOST_BYTES = 16 * 1024 * 1024
LONGEST_LINE = 64 * 1024
_PIECE = 64 * 1024
_HEADERS = {
    "Accept": "text/plain;version=0.0.4;q=1,*/*;q=0.1",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "tidewatch-readiness",
}


class ScrapeError(Exception):
    """The metric cannot be read. `result` is one of `SCRAPE_RESULTS`; the message is one line."""

    def __init__(self, result: str, message: str) -> None:
        super().__init__(message)
        self.result = result


SCRAPE_RESULTS = ("ok", "unreachable", "late", "bad_answer", "missing", "bad_value")
"""The possible results of a read."""


@dataclass(frozen=True, slots=True)
class MetricsUrl:
    """The URL at which an application serves its metrics."""

    host: str
    port: int
    target: str
    """Path and query."""

    def __str__(self) -> str:
        """Return host and port, for messages."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_metrics_url(text: str) -> MetricsUrl:
    """Return the parts of an `http://` URL. Raises ValueError, whose message states what is wrong."""
    if any(not "!" <= char <= "~" for char in text):
        raise ValueError("the URL contains a blank or a character that must be percent-encoded")
    parts = urlsplit(text)
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL contains a user or a password, which are not supported")
    if parts.scheme != "http":
        raise ValueError(f"{text!r} is not an http:// URL: the metric is read inside the pod, so TLS is not supported")
    if not parts.hostname:
        raise ValueError(f"{text!r} has no host: write http://127.0.0.1:PORT/metrics")
    port = 80 if parts.port is None else parts.port
    return MetricsUrl(parts.hostname, port, (parts.path or "/") + (parts.query and f"?{parts.query}"))


def read_total(url: MetricsUrl, choice: SeriesChoice, seconds: float) -> float:
    """Return the sum over the chosen series. Raises ScrapeError, also if the answer takes more than `seconds`."""
    until = time.monotonic() + seconds

    def remaining() -> float:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    try:
        with _connect(url, remaining) as sock:
            return _answer(url, choice, sock)
    except TimeoutError:
        raise ScrapeError("late", f"{url} did not answer completely within {seconds:g} s") from None
    except OSError as error:
        raise ScrapeError("unreachable", f"{url} cannot be reached: {error.strerror or error}") from None
    except http.client.HTTPException as error:
        reason = "it broke off" if isinstance(error, http.client.IncompleteRead) else "it is not valid HTTP"
        raise ScrapeError("bad_answer", f"the answer of {url} cannot be used: {reason}") from None
    except MissingMetricError as error:
        raise ScrapeError("missing", str(error)) from None
    except MetricValueError as error:
        raise ScrapeError("bad_value", str(error)) from None


class _TimedSocket(socket.socket):
    """A socket on which each read times out at the deadline of the whole exchange."""

    remaining: Callable[[], float]

    def recv_into(self, buffer: WriteableBuffer, nbytes: int = 0, flags: int = 0) -> int:
        self.settimeout(self.remaining())
        return super().recv_into(buffer, nbytes, flags)


def _connect(url: MetricsUrl, remaining: Callable[[], float]) -> _TimedSocket:
    failure: OSError | None = None
    # As bytes, because a text loads the tables of internationalised names.
    for family, kind, protocol, _, address in socket.getaddrinfo(url.host.encode(), url.port, type=socket.SOCK_STREAM):
        try:
            sock = _TimedSocket(family, kind, protocol)
        except OSError as error:
            # The kernel may lack the family of an address that the host has, as with IPv6 turned off.
            failure = failure or error
            continue
        sock.remaining = remaining
        try:
            sock.settimeout(remaining())
            sock.connect(address)
        except OSError as error:
            sock.close()
            failure = failure or error
        else:
            return sock
    raise failure or OSError("the host has no address")


def _answer(url: MetricsUrl, choice: SeriesChoice, sock: _TimedSocket) -> float:
    connection = http.client.HTTPConnection(url.host, url.port)
    connection.sock = sock
    connection.request("GET", url.target, headers=_HEADERS)
    with connection.getresponse() as response:
        if response.status != 200:
            hint = ": redirects are not followed, so write the final URL" if 300 <= response.status < 400 else ""
            raise ScrapeError("bad_answer", f"{url} answers with status {response.status}{hint}")
        if response.getheader("Content-Encoding", "identity").lower() != "identity":
            raise ScrapeError("bad_answer", f"{url} compresses its answer, although that was not requested")
        return _total(url, choice, response)


def _total(url: MetricsUrl, choice: SeriesChoice, response: http.client.HTTPResponse) -> float:
    """Return the sum over the chosen series in the body, which is read in pieces. Raises ScrapeError."""
    expected, is_delimited = response.length, response.chunked or response.length is not None
    total = SeriesTotal(choice)
    received, rest, last_line = 0, b"", b""
    while piece := response.read(_PIECE):
        received += len(piece)
        if received > MOST_BYTES:
            raise ScrapeError("bad_answer", f"the answer of {url} is larger than {MOST_BYTES} bytes")
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > LONGEST_LINE:
            raise ScrapeError("bad_answer", f"the answer of {url} has a line of more than {LONGEST_LINE} bytes")
        for line in lines:
            total.add(line)
        last_line = next((line for line in reversed(lines) if line), last_line)
    # Without a length, only the end of the last line shows that the document is complete.
    is_whole = received >= (expected or 0) if is_delimited else not rest
    if response.getheader("Content-Type", "").startswith("application/openmetrics-text"):
        is_whole = is_whole and (rest or last_line).rstrip(b"\r") == b"# EOF"
    if not is_whole:
        raise ScrapeError("bad_answer", f"the answer of {url} broke off after {received} bytes")
    total.add(rest)
    return total.total()
