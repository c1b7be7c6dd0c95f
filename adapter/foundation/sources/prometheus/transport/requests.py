"""One request to Prometheus's API: its path and parameters, and where matchers belong in them (pure).

Every request to a Prometheus is made here. If matchers are set, a path that is not known here is refused, since the
answer might contain the series of other clusters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from adapter.foundation.promql.tree_parser import UnreadableQueryError
from adapter.foundation.sources.prometheus.errors import UnreadableForMatchersError
from adapter.foundation.sources.prometheus.transport.http_answers import HttpRequest, watch_nothing
from adapter.foundation.sources.secrets import NO_SECRETS, Secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.promql.narrowing import Matchers
    from adapter.foundation.sources.prometheus.prometheus_settings import Endpoint, Verb

_QUERIES: Final = frozenset({"/api/v1/query", "/api/v1/query_range"})
_SERIES: Final = "/api/v1/series"
_WITHOUT_SERIES: Final = "/api/v1/status/"
_QUERY: Final = "query"
_SELECTOR: Final = "match[]"


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request, and the limit of its answer."""

    path: str
    """Path after the prefix of the base URL."""
    parameters: tuple[tuple[str, str], ...] = ()
    """The request's own parameters, without those of the base URL."""
    verb: Verb = "GET"
    body: bytes | None = None
    """Sent by POST instead of the parameters; never to a Prometheus."""
    max_bytes: int = 1 << 16
    """Largest body of the answer after decompression."""
    watch: Callable[[bytearray], None] = watch_nothing
    """Called with the body after each piece; ends the request by raising an error."""

    def narrow(self, matchers: Matchers | None) -> ApiRequest:
        """Return the request, restricted to series that match the matchers. Raises UnreadableForMatchersError."""
        if matchers is None or self.path.startswith(_WITHOUT_SERIES):
            return self
        asked = next((value for name, value in self.parameters if name in {_QUERY, _SELECTOR}), self.path)
        try:
            if self.path in _QUERIES and self.body is None:
                return replace(self, parameters=self._edited_parameters(_QUERY, matchers.in_query))
            if self.path == _SERIES and self.body is None:
                return replace(self, parameters=self._edited_parameters(_SELECTOR, matchers.in_selector))
        except UnreadableQueryError as e:
            raise UnreadableForMatchersError(asked, str(matchers), str(e)) from e
        raise UnreadableForMatchersError(
            asked, str(matchers), f"the answer of {self.path} cannot be restricted by them"
        )

    def http(self, endpoint: Endpoint, headers: dict[str, str], secrets: Secrets = NO_SECRETS) -> HttpRequest:
        """Return the request as it is sent to a server, with these headers; the answer will not show `secrets`."""
        posted = self.verb == "POST" and self.body is None
        in_target = endpoint.parameters if posted else (*endpoint.parameters, *self.parameters)
        form = {"Content-Type": "application/x-www-form-urlencoded"} if posted else {}
        return HttpRequest(
            method=self.verb,
            target=f"{endpoint.path}{self.path}{'?' if in_target else ''}{urlencode(in_target)}",
            headers={**form, **headers},
            body=urlencode(self.parameters).encode() if posted else self.body,
            max_bytes=self.max_bytes,
            watch=self.watch,
            secrets=secrets,
        )

    def _edited_parameters(self, parameter: str, edit: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
        return tuple((name, edit(value) if name == parameter else value) for name, value in self.parameters)
