"""One Prometheus server: the headers and matchers of every request, and the errors of failed ones."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.transport.credentials import Credentials
from adapter.foundation.sources.prometheus.transport.failures import TRANSPORT_ERRORS, answer_failure, transport_failure
from adapter.foundation.sources.prometheus.transport.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.sources.deadlines import Deadline
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from adapter.foundation.sources.prometheus.transport.http_answers import HttpAnswer, OpenAnswer
    from adapter.foundation.sources.prometheus.transport.requests import ApiRequest


class Server:
    """Sends requests with the credentials and the matchers of the settings. Thread-safe."""

    def __init__(self, settings: PrometheusSettings) -> None:
        """Read the credentials, without connecting yet. Raises SettingsError."""
        self.endpoint = settings.endpoint
        self._matchers = settings.matchers
        self._read_seconds = settings.read_timeout_seconds
        self._credentials = Credentials(settings)
        self._transport = Transport(
            self.endpoint,
            size=settings.pool_size,
            connect_seconds=settings.connect_timeout_seconds,
            read_seconds=settings.read_timeout_seconds,
            tls=self._credentials.tls,
        )

    def exchange(self, asked: str, request: ApiRequest, deadline: Deadline) -> HttpAnswer:
        """Return the answer, whatever its status. `asked` names the request in the PrometheusError if there is none."""
        with self.opened(asked, request, deadline) as answer:
            return answer.whole()

    @contextmanager
    def opened(self, asked: str, request: ApiRequest, deadline: Deadline) -> Iterator[OpenAnswer]:
        """Yield the answer when its head has arrived; its body is read inside the `with`. Raises PrometheusError."""
        narrowed = request.narrowed(self._matchers)
        every = {
            "Accept": "application/json",
            # On one machine, compression takes both sides longer than sending the bytes: 340 ms for 9 MB.
            "Accept-Encoding": "identity" if self.endpoint.is_loopback else "gzip",
            "User-Agent": "tidewatch",
        }
        headers = {**every, **self._credentials.headers()}
        try:
            with self._transport.opened(narrowed.http(self.endpoint, headers), deadline) as answer:
                yield answer
        except TRANSPORT_ERRORS as e:
            raise transport_failure(asked, e, self.endpoint, deadline, self._read_seconds) from e

    def success(self, asked: str, answer: HttpAnswer) -> HttpAnswer:
        """Return the answer if its status is a success; raises PrometheusError."""
        if 200 <= answer.status < 300:
            return answer
        # Gateways repeat the request in their pages, and these texts are shown to everybody who asks for a metric.
        shown = replace(answer, body=self._credentials.hidden_in(answer.body))
        failure = answer_failure(asked, shown, self.endpoint)
        if failure is not None:
            raise failure
        return answer

    def close(self) -> None:
        """Close the idle connections."""
        self._transport.close()
