"""Sends requests to an API server, by our own transport or by that of the package `kubernetes`.

The package reads every kind of kubeconfig, but importing it takes 20 MiB and 0.2 s of CPU. `PlainTransport` does the
same for credentials that are a token, a token file (as in every pod), or a client certificate.
"""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import quote, urlencode

import urllib3
from urllib3.connection import HTTPConnection
from urllib3.exceptions import SSLError

from adapter.foundation.files.followed_files import Stamp, stamps_of
from adapter.foundation.sources.kubernetes.errors import ConfigurationError, trim_message
from adapter.foundation.sources.tls import speaks_no_tls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubernetes.client.api_client import ApiClient
    from kubernetes.client.configuration import Configuration

    Timeout = float | tuple[float, float]
    """Seconds for the whole request; or a pair: seconds to connect, and seconds between two pieces of the answer."""
    from collections.abc import Callable


_CODES_OF_OPENSSL: Final = re.compile(r"^SSLError\n|\[SSL[^]]*\] | \(_ssl\.c:\d+\)$")


class TlsError(Exception):
    """The TLS connection was refused. The message is OpenSSL's without its codes, and has no request or headers."""

    def __init__(self, message: str) -> None:
        says = "this port does not speak TLS" if speaks_no_tls(message) else _CODES_OF_OPENSSL.sub("", message)
        super().__init__(says)


class KubernetesTransport(Protocol):
    """Sends requests to one address as one user. Thread-safe."""

    @property
    def pool_manager(self) -> urllib3.PoolManager:
        """The pool that makes the connections."""

    def prepare(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[str, dict[str, str]]:
        """Return the URL and the headers with the credentials.

        Raises ConfigurationError if the credentials cannot be read at present.
        """

    def send(
        self, method: str, url: str, headers: dict[str, str], body: Mapping[str, object] | None, timeout: Timeout
    ) -> urllib3.HTTPResponse:
        """Return the answer, whose body has not been read yet. Raises TlsError, and the errors of urllib3."""

    def is_outdated(self) -> bool:
        """Return whether a file with the server's CAs or a client certificate has changed since it was read."""

    def close(self) -> None:
        """Close the connections that are not in use."""


class PackageTransport:
    """The transport of the package `kubernetes`."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        found = self.configuration
        self._files = tuple(Path(file) for file in (found.ssl_ca_cert, found.cert_file, found.key_file) if file)
        self._stamps = stamps_of(self._files)

    @property
    def configuration(self) -> Configuration:
        """The address and the credentials."""
        configuration: Configuration = self._client.configuration
        return configuration

    @property
    def pool_manager(self) -> urllib3.PoolManager:
        """The pool that makes the connections."""
        manager: urllib3.PoolManager = self._client.rest_client.pool_manager
        return manager

    def prepare(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[str, dict[str, str]]:
        """Return the URL and the headers with the credentials; raises ConfigurationError."""
        from kubernetes.config import ConfigException  # noqa: PLC0415 - loaded with a client of the package alone

        try:
            _, url, sent, _, _ = self._client.param_serialize(
                method,
                path,
                query_params=list(query.items()),
                header_params=dict(headers),
                auth_settings=["BearerToken"],
            )
        except (ConfigException, OSError) as error:
            # The token file is missing or empty, because of a rotation or because the volume was removed.
            raise ConfigurationError(f"the credentials cannot be read ({type(error).__name__})") from None
        return url, sent

    def send(
        self, method: str, url: str, headers: dict[str, str], body: Mapping[str, object] | None, timeout: Timeout
    ) -> urllib3.HTTPResponse:
        """Return the answer. Raises TlsError, and the errors of urllib3."""
        from kubernetes.client.exceptions import ApiException  # noqa: PLC0415 - likewise

        try:
            answer = self._client.call_api(method, url, headers, body=body, _request_timeout=timeout)
        except ApiException as error:
            # The package raises this class only for TLS.
            raise TlsError(str(error.reason)) from None
        response: urllib3.HTTPResponse = answer.response
        return response

    def is_outdated(self) -> bool:
        """Return whether a certificate file has changed: only new connections read it, and kept ones never end."""
        return stamps_of(self._files) != self._stamps

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._client.rest_client.close()


CONNECTIONS: Final = 32
"""The most connections that are kept open: as many as the threads that may call at once."""
_KEEP_ALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 9),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainAccess:
    """An API server and the credentials for it."""

    host: str
    """`https://HOST:PORT`, without a slash at its end."""
    token: Callable[[], str] | None = None
    """Returns the value of the header Authorization; raises ConfigurationError."""
    authorities: str | None = None
    """The CAs that verify the server's certificate, in PEM; None for the system's CAs."""
    client_certificate: str | None = None
    """A client certificate and its key in PEM."""
    verifies: bool = True
    """Whether the server's certificate is verified."""
    server_name: str | None = None
    """Name that the server's certificate must be valid for; None for the host."""
    files: tuple[tuple[Path, Stamp], ...] = ()
    """The files from which the certificates were read, with their state before reading."""


class PlainTransport:
    """Sends requests with urllib3 alone."""

    def __init__(self, access: PlainAccess) -> None:
        """Prepare TLS. Raises ConfigurationError for certificates that cannot be used."""
        self._access = access
        options: dict[str, Any] = {}
        if access.host.startswith("https://"):
            # One context for all connections, since each copy of the CAs takes memory.
            options["ssl_context"] = _context(access)
            options["cert_reqs"] = ssl.CERT_REQUIRED if access.verifies else ssl.CERT_NONE
            if access.server_name:
                options["server_hostname"] = access.server_name
        self.pool_manager = urllib3.PoolManager(
            # The caller has its own back-off and deadline; a redirect would send the token to another address.
            retries=False,
            maxsize=CONNECTIONS,
            socket_options=[*HTTPConnection.default_socket_options, *_KEEP_ALIVE],
            **options,
        )

    def prepare(
        self,
        method: str,  # noqa: ARG002 - as the protocol has it
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> tuple[str, dict[str, str]]:
        """Return the URL and the headers with the credentials; raises ConfigurationError."""
        url = f"{self._access.host}{path}"
        if query:
            url = f"{url}?{urlencode(query, quote_via=quote)}"
        if self._access.token is None:
            return url, dict(headers)
        return url, {**headers, "authorization": self._access.token()}

    def send(
        self, method: str, url: str, headers: dict[str, str], body: Mapping[str, object] | None, timeout: Timeout
    ) -> urllib3.HTTPResponse:
        """Return the answer. Raises TlsError, and the errors of urllib3."""
        if isinstance(timeout, tuple):
            limits = urllib3.Timeout(connect=timeout[0], read=timeout[1])
        else:
            limits = urllib3.Timeout(total=timeout)
        content = None if body is None else json.dumps(body)
        try:
            response = self.pool_manager.request(
                method, url, body=content, headers=headers, timeout=limits, preload_content=False
            )
        except SSLError as error:
            raise TlsError(str(error)) from None
        return cast("urllib3.HTTPResponse", response)

    def is_outdated(self) -> bool:
        """Return whether a file that the certificates were read from has changed since."""
        return any(stamps_of([file]) != (stamp,) for file, stamp in self._access.files)

    def close(self) -> None:
        """Close the connections that are not in use."""
        self.pool_manager.clear()


def unusable_certificates(host: str, error: Exception) -> ConfigurationError:
    """Return the error for a CA, or for a client certificate and its key, with which no connection can be made."""
    remedy = "write them in PEM, and a certificate with its own key"
    return ConfigurationError(f"certificates for {host}: {trim_message(str(error))}: {remedy}")


def _context(access: PlainAccess) -> ssl.SSLContext:
    """Return the context of all connections; raises ConfigurationError."""
    try:
        context = urllib3.util.ssl_.create_urllib3_context(
            cert_reqs=ssl.CERT_REQUIRED if access.verifies else ssl.CERT_NONE
        )
        if access.authorities is not None:
            context.load_verify_locations(cadata=access.authorities)
        elif access.verifies:
            context.load_default_certs()
        if access.client_certificate is not None:
            _load_certificate(context, access.client_certificate)
    except (OSError, ValueError) as error:
        raise unusable_certificates(access.host, error) from None
    return context


def _load_certificate(context: ssl.SSLContext, pem: str) -> None:
    # Only a file can be loaded. Anonymous memory is one that needs no folder, and leaves no key on a disk.
    with os.fdopen(os.memfd_create("client-certificate", os.MFD_CLOEXEC), "w") as file:
        file.write(pem)
        file.flush()
        # A key with a passphrase is an error, not a question on the terminal.
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password="")
