"""One Prometheus server: the headers and matchers of every request, and the errors of failed ones."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError, SettingsError
from adapter.foundation.sources.prometheus.transport.credentials import AwaitedCredentials, Credentials
from adapter.foundation.sources.prometheus.transport.failures import TRANSPORT_ERRORS, answer_failure, transport_failure
from adapter.foundation.sources.prometheus.transport.transport import Transport
from adapter.foundation.sources.secrets import secrets_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.sources.deadlines import Deadline
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from adapter.foundation.sources.prometheus.transport.http_answers import HttpAnswer, OpenAnswer
    from adapter.foundation.sources.prometheus.transport.requests import ApiRequest


class Server:
    """Sends requests with the credentials and the matchers of the settings. Thread-safe."""

    def __init__(self, settings: PrometheusSettings, *, awaits_credentials: bool = False) -> None:
        """Read the credentials, without connecting yet.

        Raises SettingsError if they cannot be read; with `awaits_credentials`, requests fail until they can.
        """
        self.endpoint = settings.endpoint
        self._matchers = settings.matchers
        self._read_seconds = settings.read_timeout_seconds
        self._credentials = AwaitedCredentials(settings) if awaits_credentials else Credentials(settings)
        self._transport = Transport(
            self.endpoint,
            size=settings.pool_size,
            connect_seconds=settings.connect_timeout_seconds,
            read_seconds=settings.read_timeout_seconds,
            tls=self._credentials.tls,
        )

    def exchange(self, asked: str, request: ApiRequest, deadline: Deadline) -> HttpAnswer:
        """Return the answer, whatever its status: a success as a whole, and as much of a failure as a message needs.

        `asked` names the request in the PrometheusError if there is no answer.
        """
        with self.open_answer(asked, request, deadline) as answer:
            return answer.whole() if answer.is_success else answer.read_beginning()

    @contextmanager
    def open_answer(self, asked: str, request: ApiRequest, deadline: Deadline) -> Iterator[OpenAnswer]:
        """Yield the answer when its head has arrived; read its body inside the `with` block. Raises PrometheusError."""
        narrowed = request.narrow(self._matchers)
        every = {
            "Accept": "application/json",
            # On one machine, compression takes both sides longer than sending the bytes: 340 ms for 9 MB.
            "Accept-Encoding": "identity" if self.endpoint.is_loopback else "gzip",
            "User-Agent": "tidewatch",
        }
        try:
            own = self._credentials.headers()
        except SettingsError as e:
            public = "the credentials for Prometheus cannot be used"
            raise PrometheusUnreachableError(asked, str(e), public_cause=public) from e
        secrets = secrets_of(own, (value for _, value in self.endpoint.parameters))
        try:
            http = narrowed.http(self.endpoint, {**every, **own}, secrets)
            with self._transport.open_answer(http, deadline) as answer:
                yield answer
        except TRANSPORT_ERRORS as e:
            raise transport_failure(asked, e, self.endpoint, deadline, self._read_seconds) from e

    def success(self, asked: str, answer: HttpAnswer) -> HttpAnswer:
        """Return the answer if its status is a success; raises PrometheusError."""
        failure = answer_failure(asked, answer, self.endpoint)
        if failure is not None:
            raise failure
        return answer

    def close(self) -> None:
        """Close the idle connections."""
        self._transport.close()
