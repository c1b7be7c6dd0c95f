"""Credentials for Prometheus and the TLS context of connections to it, from files that may change at any time."""

from __future__ import annotations

import base64
import math
import ssl
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from adapter.foundation.files.credential_files import (
    LOOK_SECONDS,
    UNUSABLE,
    CredentialState,
    followed_credentials,
    reason_of,
    secret_of,
    token_of,
)
from adapter.foundation.files.file_contents import require_regular
from adapter.foundation.sources.prometheus.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.files.followed_files import FollowedFiles
    from adapter.foundation.sources.prometheus.prometheus_settings import AccessFiles, PrometheusSettings

T = TypeVar("T")


class Credentials:
    """The headers and the TLS context for requests, from the current content of the files."""

    def __init__(self, settings: PrometheusSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """Read all files once; raises SettingsError."""
        self._described = _followed_access(settings, settings.access_files, clock) if settings.access_files else None
        if self._described is not None:
            return
        self._headers = dict(settings.headers)
        self._authorization = _followed_authorization(settings, clock)
        self._tls = _followed_tls(settings, clock) if settings.endpoint.scheme == "https" else None

    def headers(self) -> dict[str, str]:
        """Return the configured headers and the Authorization header."""
        if self._described is not None:
            return self._described.current().headers()
        authorization = self._authorization.current() if self._authorization else None
        return {**self._headers, **({"Authorization": authorization} if authorization else {})}

    def tls(self) -> ssl.SSLContext | None:
        """Return the context for connections, a new one after the files have changed; None without TLS."""
        if self._described is not None:
            return self._described.current().tls()
        return self._tls.current() if self._tls else None


class AwaitedCredentials:
    """Credentials that may not be readable yet: they are tried again with later requests, at most once a second.

    Thread-safe. Whoever needs them meanwhile gets the SettingsError of the last attempt.
    """

    def __init__(self, settings: PrometheusSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """Try to read all files."""
        self._settings = settings
        self._clock = clock
        self._reading = threading.Lock()
        self._state: CredentialState | None = None
        """What the metric on refused credentials shows until they are read; from then on, they have states of their
        own."""
        self._next_try = -math.inf
        self._refusal = ""
        self._read: Credentials | None = None
        self._try_again()

    def headers(self) -> dict[str, str]:
        """Return the headers, as `Credentials` does; raises SettingsError."""
        return self._current().headers()

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context, as `Credentials` does; raises SettingsError."""
        return self._current().tls()

    def _current(self) -> Credentials:
        if self._read is None:
            self._try_again()
        if self._read is None:
            raise SettingsError(self._refusal)
        return self._read

    def _try_again(self) -> None:
        with self._reading:
            if self._read is not None or self._clock() < self._next_try:
                return
            self._next_try = self._clock() + LOOK_SECONDS
            try:
                self._read = Credentials(self._settings, self._clock)
            except SettingsError as e:
                self._refusal = str(e)
                self._state = self._state or CredentialState("Prometheus credentials")
                self._state.refusal = self._refusal
                return
            if self._state is not None:
                self._state.taken_in()
                self._state = None


def follow_credentials(
    what: str, paths: tuple[Path, ...], load: Callable[[], T], clock: Callable[[], float]
) -> FollowedFiles[None, T]:
    """Return credentials that are loaded from files and follow their changes; raises SettingsError."""
    try:
        return followed_credentials(what, paths, load, clock)
    except UNUSABLE as e:
        files = f"{what} ({', '.join(map(str, paths))})"
        raise SettingsError(f"{files}: {reason_of(e)}: correct the file, or name another one") from e


def _followed_access(
    settings: PrometheusSettings, files: AccessFiles, clock: Callable[[], float]
) -> FollowedFiles[None, Credentials]:
    """Return the credentials that the files describe; the files that these name in turn are followed, too."""
    return follow_credentials(
        "Prometheus kubeconfig", files.paths, lambda: Credentials(settings.with_access(files.read()), clock), clock
    )


def _followed_authorization(
    settings: PrometheusSettings, clock: Callable[[], float]
) -> FollowedFiles[None, str] | None:
    token_file, basic, password_file = settings.token_file, settings.basic_credentials, settings.password_file
    if token_file is not None:
        return follow_credentials(
            "Prometheus token file", (token_file,), lambda: f"Bearer {token_of(token_file)}", clock
        )
    if basic is None:
        return None
    user, password = basic
    if password_file is not None:
        return follow_credentials(
            "Prometheus password file", (password_file,), lambda: _basic(user, secret_of(password_file)), clock
        )
    return follow_credentials("Prometheus user and password", (), lambda: _basic(user, password or ""), clock)


def _followed_tls(settings: PrometheusSettings, clock: Callable[[], float]) -> FollowedFiles[None, ssl.SSLContext]:
    named = (settings.ca_file, settings.client_cert_file, settings.client_key_file)
    paths = tuple(path for path in named if path is not None)
    return follow_credentials("Prometheus TLS files", paths, lambda: _tls_context(settings, paths), clock)


def _tls_context(settings: PrometheusSettings, paths: tuple[Path, ...]) -> ssl.SSLContext:
    require_regular(paths)
    context = ssl.create_default_context(cafile=settings.ca_file)
    if settings.client_cert_file is not None:
        context.load_cert_chain(settings.client_cert_file, settings.client_key_file, password=_no_passphrase)
    return context


def _no_passphrase() -> str:
    # Without this, OpenSSL prompts on the terminal and waits.
    raise ValueError("the key is encrypted: a key without a passphrase is needed")


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
