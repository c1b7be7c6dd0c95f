"""Credentials for Prometheus and the TLS context of connections to it, from files that may change at any time.

Kubernetes renews mounted tokens about once an hour, and certificates whenever their issuer does, by replacing a folder
while the process runs. If a change cannot be read, or a key does not fit its certificate yet, the last good value
stays in use.
"""

from __future__ import annotations

import base64
import logging
import ssl
import time
from typing import TYPE_CHECKING, TypeVar

from adapter.foundation.files.file_contents import read_regular, require_regular
from adapter.foundation.files.followed_files import FollowedFiles, by_stamp
from adapter.foundation.sources.prometheus.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

_LOOK_SECONDS = 1.0

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Credentials:
    """The headers and the TLS context of each request, from the present content of the files."""

    def __init__(self, settings: PrometheusSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """Read all files once; raises SettingsError."""
        self._headers = dict(settings.headers)
        self._authorization = _followed_authorization(settings, clock)
        self._tls = _followed_tls(settings, clock) if settings.endpoint.scheme == "https" else None

    def headers(self) -> dict[str, str]:
        """Return the caller's headers and the authorization."""
        authorization = self._authorization.current() if self._authorization else None
        return {**self._headers, **({"Authorization": authorization} if authorization else {})}

    def tls(self) -> ssl.SSLContext | None:
        """Return the context for connections, another one after the files changed; None without TLS."""
        return self._tls.current() if self._tls else None


def followed(
    what: str, paths: tuple[Path, ...], load: Callable[[], T], clock: Callable[[], float]
) -> FollowedFiles[None, T]:
    """Return a value of files. Raises SettingsError. Later failures are logged, and the last good value is kept."""
    files = f"{what} ({', '.join(map(str, paths))})"

    def refused(error: Exception) -> None:
        _log.warning("%s has changed and cannot be used; the last good version stays in use: %s", files, _reason(error))

    try:
        return FollowedFiles(
            by_stamp(paths),
            lambda _: load(),
            unusable=(OSError, ValueError),
            on_failure=refused,
            look_every_seconds=_LOOK_SECONDS,
            clock=clock,
        )
    except (OSError, ValueError) as e:
        raise SettingsError(f"{files}: {_reason(e)}: correct the file, or name another one") from e


def _followed_authorization(
    settings: PrometheusSettings, clock: Callable[[], float]
) -> FollowedFiles[None, str] | None:
    token_file, basic, password_file = settings.token_file, settings.basic_credentials, settings.password_file
    if token_file is not None:
        return followed("Prometheus token file", (token_file,), lambda: f"Bearer {_secret_in(token_file)}", clock)
    if basic is None:
        return None
    user, password = basic
    if password_file is not None:
        return followed(
            "Prometheus password file", (password_file,), lambda: _basic(user, _secret_in(password_file)), clock
        )
    return followed("Prometheus user and password", (), lambda: _basic(user, password or ""), clock)


def _followed_tls(settings: PrometheusSettings, clock: Callable[[], float]) -> FollowedFiles[None, ssl.SSLContext]:
    named = (settings.ca_file, settings.client_cert_file, settings.client_key_file)
    paths = tuple(path for path in named if path is not None)
    return followed("Prometheus TLS files", paths, lambda: _tls_context(settings), clock)


def _tls_context(settings: PrometheusSettings) -> ssl.SSLContext:
    named = (settings.ca_file, settings.client_cert_file, settings.client_key_file)
    require_regular(path for path in named if path is not None)
    context = ssl.create_default_context(cafile=settings.ca_file)
    if settings.client_cert_file is not None:
        context.load_cert_chain(settings.client_cert_file, settings.client_key_file, password=_no_passphrase)
    return context


def _no_passphrase() -> str:
    # Without this, OpenSSL prompts on the terminal and waits.
    raise ValueError("the key is encrypted: a key without a passphrase is needed")


def _secret_in(path: Path) -> str:
    secret = read_regular(path).decode().strip()
    if not secret:
        raise ValueError("it is empty")
    if not secret.isprintable():
        raise ValueError("it holds more than one line or control characters")
    return secret


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _reason(error: Exception) -> str:
    """Return the reason without the content of the file, which errors of decoders quote."""
    if isinstance(error, UnicodeError):
        return "it is not UTF-8 text"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
