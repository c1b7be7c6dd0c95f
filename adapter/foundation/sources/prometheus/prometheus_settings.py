"""The address of Prometheus and the credentials for it, validated before the first request."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from adapter.foundation.sources.prometheus.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from adapter.foundation.promql.narrowing import Matchers

Verb = Literal["POST", "GET"]

OWN_PARAMETERS = frozenset({"query", "time", "timeout", "match[]", "start", "end", "step", "limit"})
"""Parameters that each request sets; a base URL with one of them would change every request."""
PARTIAL_RESPONSE = "partial_response"
"""Thanos's parameter that says whether an answer may lack the series of a store that does not answer."""

_OF_A_PAGE = re.compile(r"g[0-9]+[.]")
"""Prefix of the parameters of Prometheus's own web page; people may copy that page's address from a browser."""
_OF_THE_API = re.compile(r"/api/v1(/query|/query_range|/series)?$")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding"}
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The parts of the base URL."""

    scheme: str
    host: str
    port: int
    path: str
    """Path without a trailing slash; empty for the root."""
    parameters: tuple[tuple[str, str], ...]
    """Query of the base URL, which is sent with every request."""

    @property
    def shown(self) -> str:
        """The address without credentials and parameters, for messages and metrics."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    @property
    def is_loopback(self) -> bool:
        """Whether requests stay on this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@dataclass(frozen=True, slots=True)
class Access:
    """How to verify Prometheus, and the credentials to send."""

    ca_file: Path | None = None
    client_cert_file: Path | None = None
    client_key_file: Path | None = None
    token_file: Path | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class AccessFiles:
    """Files that describe the access, such as a kubeconfig, and may be replaced at any time."""

    paths: tuple[Path, ...]
    read: Callable[[], Access]
    """Returns the current access. Raises OSError and ValueError, without a secret in the message."""
    notice: str = ""
    """A warning about what cannot change while the process runs; empty if everything can."""


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """The connection to one Prometheus (or Thanos, Mimir, VictoriaMetrics). Raises SettingsError if it is invalid.

    The client reads the files and follows their changes. `repr()` contains no secret.
    """

    url: str = field(repr=False)
    """Base URL: its path is a prefix, its query is sent with every request, its user and password are basic auth."""
    verb: Verb = "POST"
    """HTTP method; `POST` falls back to `GET` if the server refuses it."""
    ca_file: Path | None = None
    """File with the CAs that verify the server's certificate; None for the system's CAs."""
    client_cert_file: Path | None = None
    client_key_file: Path | None = None
    token_file: Path | None = None
    """File with the bearer token."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Headers that are sent with every request, such as one that names a tenant."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    password_file: Path | None = None
    connect_timeout_seconds: float = 2.0
    """Time limit for connecting, and separately for the TLS handshake, unless the request's deadline is earlier."""
    read_timeout_seconds: float = 30.0
    """Longest time without data while waiting for or reading an answer, unless the request's deadline is earlier."""
    access_files: AccessFiles | None = None
    """Files that take the place of CA file, client certificate and token file; their headers are sent in addition."""
    matchers: Matchers | None = None
    """Label matchers that are put into each selector of each query, to restrict which series are read."""
    partial_response: bool | None = None
    """Thanos's parameter `partial_response`; if it is None, it is not sent, and the server's default applies."""
    pool_size: int = 30
    """Limit of concurrent requests; others wait for their turn, at most until their deadline."""

    def __post_init__(self) -> None:
        endpoint_of(self.url)
        self._check_request()
        self._check_credentials()

    @property
    def endpoint(self) -> Endpoint:
        found = endpoint_of(self.url)
        if self.partial_response is None:
            return found
        own = (PARTIAL_RESPONSE, "true" if self.partial_response else "false")
        return replace(found, parameters=(*found.parameters, own))

    @property
    def basic_credentials(self) -> tuple[str, str | None] | None:
        """User and password, possibly from the URL; the password is None if it is in `password_file`."""
        if self.username is not None:
            return self.username, self.password
        parts = urlsplit(self.url)
        if parts.username is None:
            return None
        return unquote(parts.username), unquote(parts.password or "")

    def with_access(self, access: Access) -> PrometheusSettings:
        """Return the settings with an access in place of the files that describe it; raises SettingsError."""
        return replace(
            self,
            ca_file=access.ca_file,
            client_cert_file=access.client_cert_file,
            client_key_file=access.client_key_file,
            token_file=access.token_file,
            headers=(*access.headers, *self.headers),
            access_files=None,
        )

    def _check_request(self) -> None:
        if self.verb not in {"POST", "GET"}:
            raise SettingsError(f"Prometheus verb {self.verb!r}: write POST or GET")
        for name, seconds in (("connect", self.connect_timeout_seconds), ("read", self.read_timeout_seconds)):
            if not 0 < seconds < float("inf"):
                raise SettingsError(
                    f"Prometheus {name} timeout of {seconds:g} s: write a duration above 0, such as 30s"
                )
        if self.partial_response is not None and any(
            name == PARTIAL_RESPONSE for name, _ in endpoint_of(self.url).parameters
        ):
            raise SettingsError(f"Prometheus parameter {PARTIAL_RESPONSE!r} is given twice: leave it out of the URL")
        if self.pool_size < 1:
            raise SettingsError(f"Prometheus pool of {self.pool_size} connections: write at least 1")
        for name, value in self.headers:
            _check_header(name, value)

    def _check_credentials(self) -> None:
        if (self.client_cert_file is None) != (self.client_key_file is None):
            raise SettingsError("Prometheus client certificate and key belong together: name both files, or neither")
        if self.endpoint.scheme == "http" and (self.ca_file or self.client_cert_file):
            raise SettingsError(
                f"Prometheus at {self.endpoint.shown} is queried without TLS, so CA and client certificate files would"
                " go unused: write https:// or leave the files out"
            )
        if self.password is not None and self.password_file is not None:
            raise SettingsError(
                "the Prometheus password is given twice, as a value and as a file: leave one of them out"
            )
        if self.username is None and (self.password is not None or self.password_file is not None):
            raise SettingsError("Prometheus password without a user name: give both, or neither")
        if self.username is not None and ":" in self.username:
            raise SettingsError(
                "the Prometheus user name has a colon, which basic auth cannot send: use a name without one, or a token"
            )
        ways = (
            self.token_file is not None,
            self.basic_credentials is not None,
            any(name.lower() == "authorization" for name, _ in self.headers),
        )
        if sum(ways) > 1:
            raise SettingsError(
                "Prometheus credentials are given in more than one way: choose one of token file, user and password"
                " (also as part of the URL), and Authorization header"
            )


def endpoint_of(url: str) -> Endpoint:
    """Return the parts of a base URL. Raises SettingsError, whose message never contains its user or password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as e:
        raise SettingsError("Prometheus URL: host or port cannot be read: write http(s)://HOST[:PORT][/PREFIX]") from e
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingsError(
            "Prometheus URL has no http:// or https:// or no host: write http(s)://HOST[:PORT][/PREFIX]"
        )
    if re.search(r"[\x00-\x20\x7f]", url):
        raise SettingsError(
            f"Prometheus URL of host {parts.hostname!r} holds blanks or control characters: remove them"
        )
    if port == 0:
        raise SettingsError(f"Prometheus URL of host {parts.hostname!r}: nothing answers on port 0: write its port")
    if parts.fragment:
        raise SettingsError(f"Prometheus URL of host {parts.hostname!r}: the part after # is never sent: leave it out")
    path, parameters = parts.path.rstrip("/"), tuple(parse_qsl(parts.query, keep_blank_values=True))
    _check_base(path, [name for name, _ in parameters])
    default_port = 443 if parts.scheme == "https" else 80
    return Endpoint(parts.scheme, parts.hostname, port or default_port, path, parameters)


def _check_base(path: str, parameters: Iterable[str]) -> None:
    """Reject paths and parameters that requests add themselves, and addresses of web pages."""
    if of_api := _OF_THE_API.search(path):
        raise SettingsError(f"Prometheus URL ends with {of_api[0]!r}, which every request adds: leave it out")
    for name in parameters:
        if name in OWN_PARAMETERS:
            raise SettingsError(f"Prometheus URL carries the parameter {name!r}, which every query sets: leave it out")
        if _OF_A_PAGE.match(name):
            raise SettingsError(
                f"Prometheus URL is that of a page in a browser (parameter {name!r}): write http(s)://HOST[:PORT][/PREFIX]"
            )


def _check_header(name: str, value: str) -> None:
    if not _HEADER_NAME.fullmatch(name):
        # Only the name before a colon is shown: the rest may be the value (`Authorization: Bearer …`).
        before, colon, _ = name.partition(":")
        if colon and _HEADER_NAME.fullmatch(before):
            raise SettingsError(
                f"Prometheus header {before!r}: with a colon, this is not a name of a header: write the name without it"
            )
        raise SettingsError("one of the Prometheus headers has no valid name: write one such as X-Scope-OrgID")
    if name.lower() in _OWN_HEADERS:
        raise SettingsError(f"Prometheus header {name!r} belongs to the connection and cannot be set: leave it out")
    if not value.isprintable() or not value.isascii():
        raise SettingsError(
            f"Prometheus header {name!r}: its value holds characters that are not allowed in a header: remove them"
        )
