"""Access to this project's own servers, which accept the same credentials as kube-apiserver.

Only the user entry of a kubeconfig is used; the server's address and CA are given separately. Requests are sent only
over verified TLS, whatever the kubeconfig states about its own cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from adapter.foundation.sources.kubernetes.credentials.access import (
    package_transport,
    transport_of,
    usual_configuration,
)
from adapter.foundation.sources.kubernetes.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kubernetes.client.configuration import Configuration

    from adapter.foundation.sources.kubernetes.transport import PackageTransport


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectServer:
    """A server, and the credentials for it. Raises ConfigurationError for an invalid URL."""

    url: str
    """Address of the server: `https://HOST[:PORT]`."""
    ca_file: Path | None = None
    """File with the CAs that verify the server's certificate; None for the system's CAs."""
    name: str | None = None
    """Name that the server's certificate must be valid for; None for the host of the URL."""
    token_file: Path | None = None
    kubeconfig: str | None = None
    """Kubeconfig whose user's token or client certificate is sent if there is no token file."""
    context: str | None = None

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme == "https" and parts.hostname and (parts.port or 443)
        except ValueError:
            usable = False
            parts = urlsplit("")
        if not usable or parts.username or parts.query or parts.fragment or parts.path not in {"", "/"}:
            message = "the server's URL cannot be used: write https://HOST[:PORT] and nothing after it"
            raise ConfigurationError(message)


def direct_access(server: DirectServer) -> Callable[[], PackageTransport]:
    """Return a function that creates a transport with fresh credentials; without any, it raises ConfigurationError."""

    def connect() -> PackageTransport:
        configuration = usual_configuration()
        configuration.host = server.url.rstrip("/")
        configuration.tls_server_name = server.name
        configuration.ssl_ca_cert = str(server.ca_file) if server.ca_file else None
        _identify(configuration, server)
        return transport_of(configuration)

    return connect


def _identify(configuration: Configuration, server: DirectServer) -> None:
    """Set the credentials: only the token and the certificate of a kubeconfig, and nothing about its server.

    Raises ConfigurationError if there are none.
    """
    if server.token_file is not None:
        configuration.api_key = {"authorization": f"Bearer {_token(server.token_file)}"}
        return
    found = package_transport(server.kubeconfig or "~/.kube/config", server.context).configuration
    # Versions of the package store the token under different names; this finds both.
    token = found.get_api_key_with_prefix("BearerToken", alias="authorization")
    configuration.cert_file, configuration.key_file = found.cert_file, found.key_file
    # The package also stores the password of basic authentication there.
    if token and token.startswith("Bearer "):
        configuration.api_key = {"authorization": token}
    elif not found.cert_file:
        raise ConfigurationError("the kubeconfig's user has neither a token nor a client certificate")


def _token(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(f"the token file {path}: {reason}") from None
    if not token.isascii() or not token.isprintable() or not token:
        raise ConfigurationError(f"the token file {path} contains no token")
    return token
