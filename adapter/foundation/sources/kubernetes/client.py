"""Calls to kube-apiserver: raw bytes, deadlines, classes of errors, renewal of credentials.

Lists and watches are decoded by this project's own typed decoders, 80 times faster than by the model classes of the
package `kubernetes`. Requests with credentials and TLS come from a transport (`access.py`).

Credentials may be rotated. A transport rereads an in-cluster token after each change, and runs an exec plugin again
when its token expires, but it does not reread a `tokenFile`, a client certificate or a CA bundle of a kubeconfig.
Therefore, when the credentials or the server's certificate are rejected, a new transport is created from the current
configuration, and the request is sent once more. The files are also checked once a minute, and a new transport is
created if they have changed: a CA that was removed must not stay trusted just because nothing was rejected. (client-go
has checked a CA file every five minutes since Kubernetes 1.36; before that, it never did.)
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import urllib3.exceptions

from adapter.foundation.files.credential_files import CredentialState
from adapter.foundation.sources.deadlines import Deadline
from adapter.foundation.sources.kubernetes.answers import Answer, CertificateError, WholeAnswer, transport_errors
from adapter.foundation.sources.kubernetes.errors import (
    ConfigurationError,
    KubernetesError,
    ServerError,
    UnauthorizedError,
    UnexpectedResponseError,
    UnknownOutcomeError,
    UnreachableError,
    error_of_answer,
)
from adapter.foundation.sources.kubernetes.sending import Sending, keep_to_deadlines
from adapter.foundation.sources.secrets import Secrets, secrets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from adapter.foundation.sources.kubernetes.transport import KubernetesTransport

JSON = "application/json"
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"
USER_AGENT = "tidewatch"
"""The API server takes it as the field manager of each write that states none."""

_AUTHORIZATION = "authorization"
_RENEW_SECONDS = 10.0
_LOOK_SECONDS = 60.0
"""Time between two checks for changed certificate files."""
_ERROR_BYTES = 1 << 14
_LARGEST_BYTES = 64 << 20
"""Largest answer that is read as a whole. The discovery document of a cluster with thousands of kinds has a few MiB."""


@dataclass(frozen=True, slots=True)
class RequestDeadlines:
    """Time limits of the parts of a call, in seconds."""

    connect: float = 5.0
    """Time to connect with TCP and TLS."""
    silence: float = 15.0
    """Longest time before the first piece of an answer, and between two pieces."""
    total: float = 60.0
    """Time for the whole answer; watches set their own limit."""


@dataclass(frozen=True, slots=True)
class KubernetesRequest:
    """One request, independent of the transport that sends it."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, object] | None = None
    content_type: str = JSON
    accept: str = JSON

    @property
    def what(self) -> str:
        """Name of the call in errors, without its body, which may contain a credential."""
        return f"{self.method} {self.path}"

    @property
    def headers(self) -> dict[str, str]:
        """The headers that describe the body and the answer."""
        return {"Accept": self.accept} | ({} if self.body is None else {"Content-Type": self.content_type})


class KubernetesClient:
    """Sends requests to one API server. Thread-safe."""

    def __init__(
        self,
        connect: Callable[[], KubernetesTransport],
        deadlines: RequestDeadlines = RequestDeadlines(),
        *,
        clock: Callable[[], float] = time.monotonic,
        may_ask: Callable[[float], bool] = lambda _: True,
    ) -> None:
        """`connect` is a result of `access`. It is called at once, so that an invalid configuration is found early.

        `may_ask` is called before each request. It waits at most the given seconds for the request's turn, and
        returns whether the request may be sent.
        """
        self._connect = connect
        self._deadlines = deadlines
        self._clock = clock
        self._may_ask = may_ask
        self._lock = threading.Lock()
        self._state = CredentialState("credentials for the API server")
        self._transport = self._new_transport()
        self._renewed_at = -_RENEW_SECONDS
        self._look_at = clock() + _LOOK_SECONDS

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> bytes:
        """Return the whole body. Raises KubernetesError."""
        with self.open(path, query, accept) as answer:
            return answer.whole(self._deadlines.total, _LARGEST_BYTES)

    def send(self, method: str, path: str, body: Mapping[str, object], *, seconds: float) -> bytes:
        """Send a document, as POST, PUT or PATCH; return the whole body of a 2xx answer. Raises KubernetesError.

        The request is sent once, or twice if the credentials had to be renewed. The whole call ends within `seconds`.
        """
        request = KubernetesRequest(method, path, body=body)
        return self.exchange(request, Sending(request.what, Deadline(seconds, self._clock))).body

    def exchange(self, request: KubernetesRequest, sending: Sending) -> WholeAnswer:
        """Send a request and read its answer; all socket operations end by the deadline of `sending`.

        DNS or a program that creates tokens may take longer; `Sending.in_time` limits these.
        Raises KubernetesError, which is UnknownOutcomeError if a request that is sent only once may have taken effect.
        """
        try:
            with sending.under_way(), self._streamed_answer(request, sending) as answer:
                return WholeAnswer(answer.headers, answer.whole(sending.seconds_left(), _LARGEST_BYTES))
        except (ServerError, UnreachableError, UnexpectedResponseError) as error:
            # A failure after the change was stored, or in a proxy that had passed on the request, is 5xx, too.
            if sending.is_unknown:
                raise UnknownOutcomeError(f"{error}: it may have taken effect") from error
            raise

    def open(
        self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON, silence: float | None = None
    ) -> AbstractContextManager[Answer]:
        """Send a request when the block begins, and yield the answer while it arrives. Raises KubernetesError.

        `silence` is the number of seconds without a byte of the body after which the connection counts as broken; by
        default, the client's deadlines determine it.
        """
        return self._streamed_answer(KubernetesRequest("GET", path, query or {}, accept=accept), silence=silence)

    @contextmanager
    def _streamed_answer(
        self, request: KubernetesRequest, sending: Sending | None = None, silence: float | None = None
    ) -> Iterator[Answer]:
        response, secrets = self._request_answer(request, sending)
        # The headers arrive at once, even those of a watch; only the body may be silent for longer.
        connection = response.connection
        if silence and isinstance(sock := getattr(connection, "sock", None), socket.socket):
            sock.settimeout(silence)
        try:
            yield Answer(request.what, response, self._clock, secrets)
        finally:
            # The rest of an unread answer would be mistaken for the next answer on this connection.
            response.close()

    def _request_answer(
        self, request: KubernetesRequest, sending: Sending | None
    ) -> tuple[urllib3.HTTPResponse, Secrets]:
        """Return the answer, and the secrets that it must not show.

        `sending` has the deadline of the whole call, and says whether the request may be sent twice; without it, the
        client's deadlines apply.
        """
        longest = self._deadlines.silence
        if not self._may_ask(longest if sending is None else sending.seconds_left(longest)):
            raise UnreachableError(f"{request.what}: not sent: too many requests are waiting already (--client-qps)")
        transport = self._current()
        try:
            return self._send(transport, request, sending)
        except (UnauthorizedError, CertificateError):
            renewed = self._renew(transport)
            if not renewed or (sending is not None and sending.is_unknown):
                raise
        return self._send(self._transport, request, sending)

    def _current(self) -> KubernetesTransport:
        """Return the transport. If its files have changed and can be used, create a new one first."""
        now = self._clock()
        if now < self._look_at:
            return self._transport
        with self._lock:
            former = self._transport
            if now < self._look_at:
                return former
            self._look_at = now + _LOOK_SECONDS
            # What was refused may be usable again without a change of these files, for example a token in another file.
            if not former.is_outdated() and self._state.refusal is None:
                return former
            try:
                self._transport = self._new_transport()
            except ConfigurationError as error:
                self._state.refuse(error)
                return former
            self._state.taken_in()
        former.close()
        return self._transport

    def _renew(self, refused: KubernetesTransport) -> bool:
        """Replace the refused transport, unless another thread has done so; return whether it was replaced.

        Nothing is replaced, and the result is False, in the ten seconds after an attempt.
        """
        with self._lock:
            if self._transport is not refused:
                return True
            if self._clock() - self._renewed_at < _RENEW_SECONDS:
                return False
            self._renewed_at = self._clock()
            try:
                self._transport = self._new_transport()
            except ConfigurationError as error:
                self._state.refuse(error)
                raise
            if self._state.refusal is not None:
                self._state.taken_in()
        refused.close()
        return True

    def _new_transport(self) -> KubernetesTransport:
        transport = self._connect()
        keep_to_deadlines(transport.pool_manager)
        return transport

    def _send(
        self, transport: KubernetesTransport, request: KubernetesRequest, sending: Sending | None
    ) -> tuple[urllib3.HTTPResponse, Secrets]:
        url, headers = _url_and_headers(transport, request)
        secrets = secrets_of({name: headers[name] for name in headers if name == _AUTHORIZATION})
        timeout = (self._deadlines.connect, self._deadlines.silence) if sending is None else sending.seconds_left()
        with transport_errors(request.what):
            response = transport.send(request.method, url, headers, request.body, timeout)
        if 200 <= response.status <= 299:
            return response, secrets
        try:
            refusal = response.read(_ERROR_BYTES)
        except (urllib3.exceptions.HTTPError, OSError, KubernetesError):
            # The status alone shows the outcome of the request.
            refusal = b""
        finally:
            response.close()
        # A proxy may quote the request, with its credentials, in its answer.
        shown = secrets.hidden_in(refusal)
        raise error_of_answer(request.what, response.status, shown, response.headers.get("Retry-After"))


def _url_and_headers(transport: KubernetesTransport, request: KubernetesRequest) -> tuple[str, dict[str, str]]:
    """Return the URL and the headers, with the transport's credentials."""
    # Names may have these characters, which would end the path, so that it would lead to another object.
    path = request.path.replace("?", "%3F").replace("#", "%23")
    url, headers = transport.prepare(request.method, path, request.query, request.headers)
    headers["User-Agent"] = USER_AGENT
    if _AUTHORIZATION in headers:
        # A token file may end with a line feed, which is not allowed in a header.
        headers[_AUTHORIZATION] = headers[_AUTHORIZATION].strip()
    return url, headers
