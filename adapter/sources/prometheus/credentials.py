"""What proves to Prometheus who asks, and to us who answers: made from files, and made anew when they change.

Kubernetes renews mounted tokens about hourly and certificates when their issuer likes, by swapping a folder under the
running process. A change that cannot be read, or a key that does not fit its certificate yet, keeps the last good
value.
"""

from __future__ import annotations

import base64
import logging
import ssl
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from adapter.sources.prometheus.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.sources.prometheus.settings import PrometheusSettings

_LOOK_SECONDS = 1.0

_log = logging.getLogger(__name__)

T = TypeVar("T")
_Fingerprint = tuple[tuple[int, int, int] | None, ...]


class FollowedFiles(Generic[T]):
    """A value made from files, made anew when one of them has changed."""

    def __init__(
        self,
        what: str,
        paths: tuple[Path, ...],
        load: Callable[[], T],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load once; raises SettingsError. Later failures are logged, and the last good value stays."""
        self._what = what
        self._paths = paths
        self._load = load
        self._clock = clock
        self._lock = threading.Lock()
        self._looked_at = clock()
        self._fingerprint = self._look()
        try:
            self._value = load()
        except (OSError, ValueError) as e:
            raise SettingsError(f"{what} ({self._names}): {_reason(e)}") from e

    def value(self) -> T:
        """Return the current value; looks at the files at most once a second."""
        with self._lock:
            now = self._clock()
            if self._paths and now - self._looked_at >= _LOOK_SECONDS:
                self._looked_at = now
                self._follow()
            return self._value

    @property
    def _names(self) -> str:
        return ", ".join(str(path) for path in self._paths)

    def _follow(self) -> None:
        # Taken before the files are read: a change in between is seen the next time.
        fingerprint = self._look()
        if fingerprint == self._fingerprint:
            return
        self._fingerprint = fingerprint
        try:
            self._value = self._load()
        except (OSError, ValueError) as e:
            _log.warning(
                "%s (%s) has changed and is not usable, the last good one stays: %s",
                self._what,
                self._names,
                _reason(e),
            )

    def _look(self) -> _Fingerprint:
        return tuple(_fingerprint(path) for path in self._paths)


class Credentials:
    """The headers and the TLS context of each request, as the files say now."""

    def __init__(self, settings: PrometheusSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """Read all files once; raises SettingsError."""
        self._headers = dict(settings.headers)
        self._authorization = _followed_authorization(settings, clock)
        self._tls = _followed_tls(settings, clock) if settings.endpoint.scheme == "https" else None

    def headers(self) -> dict[str, str]:
        """Return the caller's headers and the authorization."""
        authorization = self._authorization.value() if self._authorization else None
        return {**self._headers, **({"Authorization": authorization} if authorization else {})}

    def tls(self) -> ssl.SSLContext | None:
        """Return the context for new connections; None without TLS. Connections that stand keep theirs."""
        return self._tls.value() if self._tls else None


def _followed_authorization(settings: PrometheusSettings, clock: Callable[[], float]) -> FollowedFiles[str] | None:
    token_file, basic, password_file = settings.token_file, settings.basic_credentials, settings.password_file
    if token_file is not None:
        return FollowedFiles("Prometheus token file", (token_file,), lambda: f"Bearer {_secret_in(token_file)}", clock)
    if basic is None:
        return None
    user, password = basic
    if password_file is not None:
        return FollowedFiles(
            "Prometheus password file", (password_file,), lambda: _basic(user, _secret_in(password_file)), clock
        )
    return FollowedFiles("Prometheus user and password", (), lambda: _basic(user, password or ""), clock)


def _followed_tls(settings: PrometheusSettings, clock: Callable[[], float]) -> FollowedFiles[ssl.SSLContext]:
    named = (settings.ca_file, settings.client_cert_file, settings.client_key_file)
    paths = tuple(path for path in named if path is not None)
    return FollowedFiles("Prometheus TLS files", paths, lambda: _tls_context(settings), clock)


def _tls_context(settings: PrometheusSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ca_file)
    if settings.client_cert_file is not None:
        context.load_cert_chain(settings.client_cert_file, settings.client_key_file, password=_no_passphrase)
    return context


def _no_passphrase() -> str:
    # Without this, OpenSSL asks on the terminal and waits.
    raise ValueError("the key is encrypted: a key without a passphrase is needed")


def _secret_in(path: Path) -> str:
    secret = path.read_text(encoding="utf-8").strip()
    if not secret:
        raise ValueError("it is empty")
    if not secret.isprintable():
        raise ValueError("it holds more than one line or control characters")
    return secret


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _fingerprint(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _reason(error: Exception) -> str:
    """Say what is wrong without the content: errors of decoders quote it."""
    if isinstance(error, UnicodeError):
        return "it is not UTF-8 text"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
