"""HTTP/1.1 exchanges with one server, each of which ends by its deadline, whatever the server does.

The connections are those of urllib3, but the pool is our own, for two reasons. First, a timeout of urllib3 applies to a
single read, so a server that sends a byte a second would block a thread for hours; here, each read of the head and of
the body waits at most until the request's deadline. Second, urllib3 does not show whether a connection is new: a server
may close an idle connection while a request is being sent on it, which does not mean that the server is unhealthy. So a
request that was sent on a *reused* connection and got *no byte* back is sent once more, at once, on a new connection.
Queries change nothing on the server, so this is safe; all other failures are raised. After a timeout on a reused
connection, those that have been idle since before the request are closed, so that the next one asks for the address of
the server again.

The name of the server is resolved by the system's resolver, which has time limits of its own (resolv.conf). A
connection serves for five minutes at most: if the name, or the Service behind its address, leads to another server
meanwhile, the former one may go on answering, with older and older values.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections import deque
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from urllib3.connection import HTTPConnection, HTTPSConnection

from adapter.foundation.sources.deadlines import Deadline, DeadlinePassedError, TimedReads, TimedResponse
from adapter.foundation.sources.prometheus.transport.answer_memory import AnswerMemory
from adapter.foundation.sources.prometheus.transport.http_answers import HttpRequest, OpenAnswer
from adapter.foundation.sources.tls import speaks_no_tls
from adapter.foundation.time.thread_limit import ThreadLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from urllib3.response import BaseHTTPResponse

    from adapter.foundation.sources.prometheus.prometheus_settings import Endpoint


_LONGEST_USE_SECONDS: Final = 300.0
"""Age from which a connection gets no further request."""


class ConnectFailedError(ConnectionError):
    """No connection was established, because of the name, route, port or TLS."""

    def __init__(self, failed: str, publicly: str, reason: str) -> None:
        """Say what failed, once with the address or name of the server and once without it, and why."""
        super().__init__(f"{failed}: {reason}")
        self.public_cause = f"{publicly}: {reason}"


class Transport:
    """Connections to one server, at most `size` at a time. Thread-safe."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        size: int,
        connect_seconds: float,
        read_seconds: float,
        tls: Callable[[], ssl.SSLContext | None],
    ) -> None:
        """`tls` returns the current context. `connect_seconds` limits connecting; `read_seconds`, time without data.

        An idle connection that was made with an earlier context is not used again.
        """
        self._endpoint = endpoint
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._tls = tls
        self.memory = AnswerMemory()
        """The memory of the answers that are being read."""
        self._limit = ThreadLimit(size, lambda: DeadlinePassedError(f"all {size} connections were busy"))
        # The connection that was used last is used first, so that the server closes those that are no longer needed.
        self._idle: deque[tuple[float, HTTPConnection]] = deque()
        """Idle connections, each with the time since which it has been idle, in monotonic seconds."""
        self._made_at: WeakKeyDictionary[HTTPConnection, float] = WeakKeyDictionary()
        """When each connection was made, in monotonic seconds."""

    @contextmanager
    def open_answer(self, request: HttpRequest, deadline: Deadline) -> Iterator[OpenAnswer]:
        """Send the request, and yield the answer when its head has arrived; read its body inside the `with` block.

        A connection whose answer was not read to its end is closed. Raises OSError (DeadlinePassedError and
        ConnectFailedError among them), http.client.HTTPException, urllib3's HTTPError, BodyTooLargeError and
        BodyUnreadableError; reading the body raises the same.
        """
        with self._limit.entered(deadline.remaining()):
            connection, response = self._begin_exchange(request, deadline)
            try:
                answer = OpenAnswer(response, request, self.memory, deadline)
                yield answer
            except BaseException:
                connection.close()
                raise
            # The connection is already closed if the server requested that.
            if not answer.is_read:
                connection.close()
            elif connection.sock is not None:
                self._idle.append((time.monotonic(), connection))

    def close(self) -> None:
        """Close the idle connections; the transport stays usable."""
        while (connection := self._take_idle()) is not None:
            connection.close()

    def _idle_connection(self) -> HTTPConnection | None:
        context, oldest = self._tls(), time.monotonic() - _LONGEST_USE_SECONDS
        while (connection := self._take_idle()) is not None:
            # A connection that is readable without a request was closed by the server, or has unexpected data. One of
            # another context was made before the files changed: its server may be one of a CA that is gone.
            is_of_context = getattr(connection.sock, "context", None) is context
            if is_of_context and self._made_at[connection] > oldest and connection.is_connected:
                return connection
            connection.close()
        return None

    def _take_idle(self) -> HTTPConnection | None:
        try:
            return self._idle.pop()[1]
        except IndexError:
            return None

    def _close_idle_since_before(self, moment: float) -> None:
        """Close the connections that have been idle since before a moment."""
        while self._idle:
            try:
                since, connection = self._idle.popleft()
            except IndexError:
                return
            if since >= moment:
                self._idle.appendleft((since, connection))
                return
            connection.close()

    def _new_connection(self, deadline: Deadline) -> HTTPConnection:
        context = self._tls()
        kind = HTTPSConnection if context else HTTPConnection
        connection = kind(self._endpoint.host, self._endpoint.port)
        self._made_at[connection] = time.monotonic()
        connection.sock = _connected_socket(
            self._endpoint, context, partial(self._wait, self._connect_seconds, deadline)
        )
        return connection

    def _begin_exchange(self, request: HttpRequest, deadline: Deadline) -> tuple[HTTPConnection, BaseHTTPResponse]:
        reused = self._idle_connection()
        if reused is not None:
            response = self._begun_on_reused(reused, request, deadline)
            if response is not None:
                return reused, response
        fresh = self._new_connection(deadline)
        return fresh, self._begun_on(fresh, request, TimedReads(partial(self._wait, self._read_seconds, deadline)))

    def _begun_on_reused(
        self, connection: HTTPConnection, request: HttpRequest, deadline: Deadline
    ) -> BaseHTTPResponse | None:
        """Return the answer; None if the server closed the connection instead of answering."""
        began = time.monotonic()
        reads = TimedReads(partial(self._wait, self._read_seconds, deadline))
        try:
            return self._begun_on(connection, request, reads)
        except (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            if reads.received:
                raise
            return None
        except TimeoutError:
            # A machine that is lost never closes its connections: each of them would cost one more timeout.
            if not reads.received:
                self._close_idle_since_before(began)
            raise

    def _begun_on(self, connection: HTTPConnection, request: HttpRequest, reads: TimedReads) -> BaseHTTPResponse:
        try:
            return self._send_request(connection, request, reads)
        except BaseException:
            connection.close()
            raise

    def _send_request(self, connection: HTTPConnection, request: HttpRequest, reads: TimedReads) -> BaseHTTPResponse:
        """Send the request and return the answer when its head has arrived."""
        # The connection creates its answers, which get the deadline here.
        connection.response_class = partial(TimedResponse, reads=reads)  # type: ignore[assignment]  # any callable
        connection.timeout = reads.next_wait()
        assert connection.sock is not None
        connection.sock.settimeout(connection.timeout)
        # The server's last data explain more than the closed connection: with TLS 1.3, a client's certificate is
        # refused after the handshake, when the request is already being sent.
        with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            connection.request(
                request.method, request.target, body=request.body, headers=request.headers, preload_content=False
            )
        return connection.getresponse()

    @staticmethod
    def _wait(limit_seconds: float, deadline: Deadline) -> float:
        return min(limit_seconds, deadline.remaining())


def _connected_socket(
    endpoint: Endpoint, context: ssl.SSLContext | None, next_wait: Callable[[], float]
) -> socket.socket:
    """Try the server's addresses in turn. The time limit applies to each connect, and again to the TLS handshake."""
    try:
        addresses = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as e:
        failed = f"the name {endpoint.host!r} cannot be resolved"
        raise ConnectFailedError(failed, "the name of Prometheus cannot be resolved", _cause(e)) from e
    failure: OSError | None = None
    for family, kind, protocol, _, address in addresses:
        plain = socket.socket(family, kind, protocol)
        try:
            plain.settimeout(next_wait())
            plain.connect(address)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return _with_tls(plain, endpoint, context, next_wait) if context else plain
        except (DeadlinePassedError, ConnectFailedError):
            plain.close()
            raise
        except OSError as e:
            plain.close()
            failure = e
    failed = f"no connection to {endpoint.shown}"
    raise ConnectFailedError(failed, "no connection to Prometheus", _cause(failure)) from failure


def _with_tls(
    plain: socket.socket, endpoint: Endpoint, context: ssl.SSLContext, next_wait: Callable[[], float]
) -> ssl.SSLSocket:
    plain.settimeout(next_wait())
    try:
        return context.wrap_socket(plain, server_hostname=endpoint.host)
    except (OSError, ValueError) as e:
        failed = f"the TLS handshake with {endpoint.shown} failed"
        raise ConnectFailedError(failed, "the TLS handshake with Prometheus failed", _cause(e)) from e


def certificate_refusal(error: BaseException | None) -> str:
    """Return why one side does not accept the other's certificate; empty if the error is another one."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    # With TLS 1.3, the server's alert arrives after the handshake, in place of the answer.
    reason = (isinstance(error, ssl.SSLError) and error.reason) or ""
    _, _, alert = reason.partition("_ALERT_")
    if alert == "CERTIFICATE_REQUIRED":
        return "it requires a client certificate"
    if "CERTIFICATE" in alert or alert == "UNKNOWN_CA":
        return f"it does not accept this program's client certificate: {alert.lower().replace('_', ' ')}"
    return ""


def _cause(error: Exception | None) -> str:
    if refusal := certificate_refusal(error):
        return refusal
    if isinstance(error, ssl.SSLError) and speaks_no_tls(str(error)):
        return "it does not speak TLS: write http://, or the port that speaks TLS"
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) if error else "it has no address"
