"""Access to a server that is not kube-apiserver and takes the same identities: this project's own, asked directly.

Of a kubeconfig only the user's entry counts, who asks: the server's address, its CA and whether it is verified are said
apart. Nothing is sent over anything but verified TLS, whatever the kubeconfig says of its own cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from adapter.sources.kubernetes.access import from_kubeconfig, transport_of, usual_configuration
from adapter.sources.kubernetes.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kubernetes.client.api_client import ApiClient
    from kubernetes.client.configuration import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectServer:
    """A server, and who asks it. Raises ConfigurationError for an address that cannot be one."""

    url: str
    """`https://HOST[:PORT]`."""
    ca_file: Path | None = None
    """CAs that vouch for it; None: those of the system."""
    name: str | None = None
    """Whom its certificate must be for; None: the URL's host."""
    token_file: Path | None = None
    kubeconfig: str | None = None
    """Whose user's token or client certificate is shown, where there is no token file."""
    context: str | None = None

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme == "https" and parts.hostname and (parts.port or 443)
        except ValueError:
            usable = False
            parts = urlsplit("")
        if not usable or parts.username or parts.query or parts.fragment or parts.path not in {"", "/"}:
            message = "the server's URL cannot be used: write https://HOST[:PORT] and nothing behind it"
            raise ConfigurationError(message)


def direct_access(server: DirectServer) -> Callable[[], ApiClient]:
    """Return what makes a transport with fresh credentials; it raises ConfigurationError where there are none."""

    def connect() -> ApiClient:
        configuration = usual_configuration()
        configuration.host = server.url.rstrip("/")
        configuration.tls_server_name = server.name
        configuration.ssl_ca_cert = str(server.ca_file) if server.ca_file else None
        _identify(configuration, server)
        return transport_of(configuration)

    return connect


def _identify(configuration: Configuration, server: DirectServer) -> None:
    """Enter who asks: of a kubeconfig's configuration token and certificate alone, and nothing that is about a server.

    Raises ConfigurationError where nobody is known by it.
    """
    if server.token_file is not None:
        configuration.api_key = {"authorization": f"Bearer {_token(server.token_file)}"}
        return
    found = from_kubeconfig(server.kubeconfig or "~/.kube/config", server.context)().configuration
    # The package has changed the name under which it keeps the token; this knows both.
    token = found.get_api_key_with_prefix("BearerToken", alias="authorization")
    configuration.cert_file, configuration.key_file = found.cert_file, found.key_file
    # The package keeps a user's password there, too, for basic auth.
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
        raise ConfigurationError(f"the token file {path} holds no token")
    return token
