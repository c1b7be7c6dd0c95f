"""prometheus-api-client on this project's transport.

By default, that client waits forever, retries three times with pauses, follows redirects, and replaces the connections
of the session that it is given. Here, its session uses `Server`, with the same credentials, deadlines, size limit and
errors as other queries, a single attempt, and no redirects. Only `connection` imports this module, when it is first
needed.
"""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import requests
from prometheus_api_client.prometheus_connect import PrometheusConnect
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.deadlines import Deadline
from adapter.foundation.sources.prometheus.answers.answer_elements import INSTANT_LIMITS
from adapter.foundation.sources.prometheus.answers.envelopes import Envelope, refuse_failure
from adapter.foundation.sources.prometheus.transport.requests import ApiRequest
from adapter.foundation.sources.prometheus.transport.server import Server

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from adapter.foundation.sources.prometheus.transport.http_answers import HttpAnswer


class Library(PrometheusConnect):
    """A PrometheusConnect whose calls end in time and raise PrometheusError if they fail."""

    def __init__(self, settings: PrometheusSettings, timeout_seconds: float) -> None:
        """Read the credentials; raises SettingsError."""
        session = requests.Session()
        # Without proxies and .netrc: only the settings determine what is sent.
        session.trust_env = False
        # This time-out has no effect: the adapter below has the deadline.
        super().__init__(url=settings.endpoint.shown, session=session, timeout=math.ceil(timeout_seconds))
        # After the constructor, which mounts its own.
        session.mount(self.url, _ServerAdapter(settings, timeout_seconds))
        session.hooks["response"].append(self._note_envelope)
        self.warnings: tuple[str, ...] = ()
        """Warnings of the last answer, which the library drops although they may say that the values are partial."""

    def _note_envelope(self, response: requests.Response, **_options: object) -> None:
        """Note the warnings; raises UnexpectedAnswerError for an answer whose own status is not success."""
        envelope = decoder_of(Envelope).decode(response.content)
        refuse_failure(urlsplit(response.url).path, envelope)
        self.warnings = envelope.annotations.warnings

    def version(self) -> str:
        """Return the server's version."""
        answer = self._session.get(f"{self.url}/api/v1/status/buildinfo")
        return str(answer.json()["data"]["version"])


class _ServerAdapter(BaseAdapter):
    """Sends prepared requests with a Server."""

    def __init__(self, settings: PrometheusSettings, timeout_seconds: float) -> None:
        super().__init__()
        self._server = Server(settings)
        self._timeout_seconds = timeout_seconds

    def send(self, request: requests.PreparedRequest, *_: object, **_options: object) -> requests.Response:
        """Return the whole answer if it is a success; raises PrometheusError.

        The options of the library (time-out, verification, proxies) are ignored: the settings determine them.
        """
        address = urlsplit(request.url or "")
        outgoing = ApiRequest(
            address.path.removeprefix(self._server.endpoint.path),
            tuple(parse_qsl(address.query, keep_blank_values=True)),
            max_bytes=INSTANT_LIMITS.max_bytes,
        )
        answer = self._server.exchange(address.path, outgoing, Deadline(self._timeout_seconds))
        return _response_of(request, self._server.success(address.path, answer))

    def close(self) -> None:
        self._server.close()


def _response_of(request: requests.PreparedRequest, answer: HttpAnswer) -> requests.Response:
    response = requests.Response()
    response.status_code = answer.status
    response.headers = CaseInsensitiveDict(answer.headers)
    response.url = request.url or ""
    response.request = request
    response.raw = io.BytesIO(answer.body)
    return response
