"""Calls to kube-apiserver: raw bytes, deadlines, errors by class, credentials that are renewed.

Lists and watches are decoded by this project's own typed decoders, 80 times faster than by the model classes of the
package `kubernetes`. All that is asked of it is a request with the right credentials over the right TLS (`access.py`).

Rotated credentials: the package reads an in-cluster token anew each minute and runs an exec plugin again when its token
says that it ends. It never reads a `tokenFile`, a client certificate or a CA bundle of a kubeconfig a second time.
Therefore a refusal of the credentials, or of the server's certificate, makes a new transport from the configuration as
it is by then, and the request is sent once more.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import urllib3.exceptions

from adapter.sources.deadlines import Deadline
from adapter.sources.kubernetes.errors import (
    ConfigurationError,
    KubernetesError,
    ServerError,
    SilentError,
    UnauthorizedError,
    UnexpectedResponseError,
    UnknownOutcomeError,
    UnreachableError,
    error_of_answer,
    trimmed,
)
from adapter.sources.kubernetes.sending import Sending, keep_to_deadlines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kubernetes.client.api_client import ApiClient

JSON = "application/json"
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"

_RENEW_SECONDS = 10.0
_READ_BYTES = 1 << 16
_ERROR_BYTES = 1 << 14
_LARGEST_BYTES = 64 << 20
"""Of an answer that is held whole: discovery of a cluster with thousands of kinds has some MiB."""


@dataclass(frozen=True, slots=True)
class RequestDeadlines:
    """How long each part of a call may take, in seconds."""

    connect: float = 5.0
    """TCP and TLS."""
    silence: float = 15.0
    """Between two pieces of an answer, and before the first."""
    total: float = 60.0
    """A whole answer; not for watches, which state their own."""


class Answer:
    """The body of a 2xx answer, piece by piece."""

    def __init__(self, what: str, response: urllib3.HTTPResponse, clock: Callable[[], float]) -> None:
        """Take a response whose body is unread; `what` names the call in errors."""
        self.what = what
        self._response = response
        self._clock = clock
        self._cancelled = False

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that came before the body, whatever the case of their names."""
        return self._response.headers

    def pieces(self, total_seconds: float) -> Iterator[bytes]:
        """Yield the bytes as they arrive, until the answer ends or is cancelled.

        Raises UnreachableError when the connection fails, or when the answer has not ended after `total_seconds`.
        """
        end = self._clock() + total_seconds
        while not self._cancelled:
            with _transport_errors(self.what):
                piece = self._response.read1(_READ_BYTES)
            if not piece:
                return
            yield piece
            if self._clock() >= end:
                raise UnreachableError(f"{self.what}: the answer did not end within {total_seconds:g} s")

    def whole(self, total_seconds: float, most_bytes: int) -> bytes:
        """Return the whole body. Raises UnreachableError as `pieces`, and UnexpectedAnswerError if it is larger."""
        body = bytearray()
        for piece in self.pieces(total_seconds):
            body += piece
            if len(body) > most_bytes:
                raise UnexpectedResponseError(f"{self.what}: the answer is larger than {most_bytes >> 20} MiB")
        return bytes(body)

    def cancel(self) -> None:
        """End a read that waits in another thread, and all later ones."""
        self._cancelled = True
        try:
            self._response.shutdown()
        except (OSError, ValueError, RuntimeError):
            # Already ended, or the connection went away by itself.
            return


@dataclass(frozen=True, slots=True)
class _Call:
    """One request, whatever transport it goes out by."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    timeout: tuple[float, float] = (0.0, 0.0)
    """Seconds for connecting and for each silence, of a call without `sending`."""
    body: Mapping[str, object] | None = None
    sending: Sending | None = None
    """What limits the call as a whole."""

    @property
    def what(self) -> str:
        """The call as errors name it: nothing of its body, which may hold a credential."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class KubernetesRequest:
    """A request whose answer is small and read as a whole."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, object] | None = None
    content_type: str = JSON

    @property
    def what(self) -> str:
        """The call as errors name it: nothing of its body, which may hold a credential."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """A 2xx answer that came to its end."""

    headers: Mapping[str, str]
    """Whatever the case of their names."""
    body: bytes


class KubernetesClient:
    """Requests to one API server. Thread-safe."""

    def __init__(
        self,
        connect: Callable[[], ApiClient],
        deadlines: RequestDeadlines = RequestDeadlines(),
        *,
        user_agent: str = "tidewatch",
        clock: Callable[[], float] = time.monotonic,
        may_ask: Callable[[float], bool] = lambda _: True,
    ) -> None:
        """`connect` is what `access.py` returns; it is called at once, so that a bad configuration shows at start.

        `may_ask` is called before each request, waits for its turn for as long as it is told, and returns whether it
        has come.
        """
        self._connect = connect
        self._deadlines = deadlines
        self._user_agent = user_agent
        self._clock = clock
        self._may_ask = may_ask
        self._lock = threading.Lock()
        self._transport = self._connected()
        self._renewed_at = -_RENEW_SECONDS

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> bytes:
        """Return the whole body. Raises KubernetesError."""
        with self.open(path, query, accept) as answer:
            return answer.whole(self._deadlines.total, _LARGEST_BYTES)

    def send(
        self, method: str, path: str, body: Mapping[str, object], *, seconds: float, content_type: str = JSON
    ) -> bytes:
        """Send a document, as POST, PUT or PATCH; return the whole body of a 2xx answer. Raises KubernetesError.

        It is sent once, and once more where the credentials had to be renewed. The whole ends within `seconds`.
        """
        request = KubernetesRequest(method, path, body=body, content_type=content_type)
        return self.exchange(request, Sending(request.what, Deadline(seconds, self._clock))).body

    def exchange(self, request: KubernetesRequest, sending: Sending) -> WholeAnswer:
        """Send a request and read its answer, all of it by the deadline of `sending` as far as sockets go.

        A look-up of a name, or a program that makes tokens, may take longer: `Sending.in_time` covers those.
        Raises KubernetesError: UnknownOutcomeError where a request that is sent once only may have taken effect.
        """
        headers = {"Accept": JSON} | ({} if request.body is None else {"Content-Type": request.content_type})
        call = _Call(request.method, request.path, request.query, headers, body=request.body, sending=sending)
        try:
            with sending.under_way():
                return self._exchanged(call, sending)
        except ServerError as error:
            # What failed after the change was stored, or in a proxy that had handed the request on, is 5xx too.
            if sending.is_unknown:
                raise UnknownOutcomeError(f"{error}: it may have taken effect") from error
            raise
        except (UnreachableError, UnexpectedResponseError) as error:
            if sending.is_unknown:
                raise UnknownOutcomeError(f"{error}: it may have taken effect") from error
            raise

    def _exchanged(self, call: _Call, sending: Sending) -> WholeAnswer:
        response = self._asked(call)
        try:
            body = Answer(call.what, response, self._clock).whole(sending.left(), _LARGEST_BYTES)
        finally:
            response.close()
        return WholeAnswer(response.headers, body)

    @contextmanager
    def open(
        self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON, silence: float | None = None
    ) -> Iterator[Answer]:
        """Ask, and give the answer to the `with` block as it arrives. Raises KubernetesError.

        `silence`: seconds without a byte of the body after which the connection counts as dead, where they are not
        those of the client's deadlines.
        """
        timeout = (self._deadlines.connect, self._deadlines.silence)
        call = _Call("GET", path, query or {}, {"Accept": accept}, timeout)
        response = self._asked(call)
        # Headers come at once, also those of a watch; only then may there be silence.
        connection = response.connection
        if silence and isinstance(sock := getattr(connection, "sock", None), socket.socket):
            sock.settimeout(silence)
        try:
            yield Answer(call.what, response, self._clock)
        finally:
            # What has not been read to its end would be the next answer on this connection.
            response.close()

    def _asked(self, call: _Call) -> urllib3.HTTPResponse:
        sending = call.sending
        longest = self._deadlines.silence
        if not self._may_ask(longest if sending is None else sending.left(longest)):
            raise UnreachableError(f"{call.what}: not asked: too many requests wait already (--client-qps)")
        transport = self._transport
        try:
            return self._send(transport, call)
        except (UnauthorizedError, _CertificateError):
            renewed = self._renew(transport)
            if not renewed or (sending is not None and not sending.may_repeat):
                raise
        return self._send(self._transport, call)

    def _renew(self, refused: ApiClient) -> bool:
        """Make a transport from the configuration as it is now; False when that was done a moment ago."""
        with self._lock:
            if self._transport is not refused:
                return True
            if self._clock() - self._renewed_at < _RENEW_SECONDS:
                return False
            self._renewed_at = self._clock()
            self._transport = self._connected()
        refused.rest_client.close()
        return True

    def _connected(self) -> ApiClient:
        transport = self._connect()
        keep_to_deadlines(transport.rest_client.pool_manager)
        return transport

    def _send(self, transport: ApiClient, call: _Call) -> urllib3.HTTPResponse:
        method, url, headers = self._request(transport, call)
        timeout = call.timeout if call.sending is None else call.sending.left()
        with _transport_errors(call.what):
            answer = transport.call_api(method, url, headers, body=call.body, _request_timeout=timeout)
        response: urllib3.HTTPResponse = answer.response
        if 200 <= response.status <= 299:
            return response
        try:
            refusal = response.read(_ERROR_BYTES)
        except (urllib3.exceptions.HTTPError, OSError, KubernetesError):
            # The status alone tells what became of the request.
            refusal = b""
        finally:
            response.close()
        raise error_of_answer(call.what, response.status, refusal, response.headers.get("Retry-After"))

    def _request(self, transport: ApiClient, call: _Call) -> tuple[str, str, dict[str, str]]:
        from kubernetes.config import ConfigException  # noqa: PLC0415 - the package is loaded when it is needed

        try:
            method, url, headers, _, _ = transport.param_serialize(
                call.method,
                call.path,
                query_params=list(call.query.items()),
                header_params=dict(call.headers),
                auth_settings=["BearerToken"],
            )
        except (ConfigException, OSError) as error:
            # The token file is gone or empty: a rotation under way, or the end of the volume.
            raise ConfigurationError(f"the credentials cannot be read ({type(error).__name__})") from None
        headers["User-Agent"] = self._user_agent
        if "authorization" in headers:
            # A token file may end with a line feed, which a header must not hold.
            headers["authorization"] = headers["authorization"].strip()
        return method, url, headers


class _CertificateError(UnreachableError):
    """The server's certificate was not verified: the CA bundle may have been replaced."""


@contextmanager
def _transport_errors(what: str) -> Iterator[None]:
    from kubernetes.client.exceptions import ApiException  # noqa: PLC0415 - likewise

    try:
        yield
    except KubernetesError:
        raise
    except ApiException as error:
        # The transport's one use of this class: TLS. Its text is OpenSSL's, without request or headers.
        raise _CertificateError(f"{what}: TLS: {trimmed(str(error.reason))}") from None
    except urllib3.exceptions.NewConnectionError as error:
        # Its text begins with the connection object. It counts as a time-out, though it is mostly a refusal.
        raise UnreachableError(f"{what}: cannot connect: {trimmed(str(error).rsplit(': ', 1)[-1])}") from error
    except urllib3.exceptions.ReadTimeoutError as error:
        raise SilentError(f"{what}: no answer in time") from error
    except urllib3.exceptions.TimeoutError as error:
        raise UnreachableError(f"{what}: no connection in time") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise UnreachableError(f"{what}: {trimmed(str(error))}") from error
    except ValueError:
        # A header that cannot be sent; the exception quotes its value.
        raise ConfigurationError(f"{what}: the credentials are not of a form that can be sent") from None
