"""The CAs by which callers are authenticated: an immutable value, built from flags and a ConfigMap.

    --requestheader-client-ca-file, and the other --requestheader-… flags with it   or the ConfigMap's keys
    --client-ca-file                                                                or the ConfigMap's key

A flag wins over the ConfigMap as in `k8s.io/apiserver`: for the front proxy as a whole, and for the client CA. A
source that cannot be used is refused as a whole with the reason, and its last good content stays in use.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.metrics.identity.authorities import Authorities, AuthorityFile
from adapter.metrics.identity.callers import IdentitySettingsError
from adapter.metrics.identity.front_proxy import FrontProxyMaterial
from adapter.metrics.identity.headers import HeaderNames

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


_log = logging.getLogger(__name__)

EVERY_NAME_SPEAKS = (
    "Every certificate that the request-header CA has signed may act for any user: name the front proxy's common "
    "name with --requestheader-allowed-names."
)


@dataclass(frozen=True, slots=True)
class FrontProxySettings:
    """The settings of the `--requestheader-…` flags."""

    ca_file: Path
    allowed_names: tuple[str, ...] = ()
    """Common names that are allowed to impersonate users; if empty, all names in the CA's certificates are."""
    names: HeaderNames = field(default_factory=HeaderNames)


@dataclass(frozen=True, slots=True)
class MaterialSettings:
    """The sources of the CAs."""

    front_proxy: FrontProxySettings | None = None
    client_ca_file: Path | None = None
    looked_up: bool = False
    """Whether the ConfigMap provides what the flags do not set."""

    @property
    def asks_for_certificates(self) -> bool:
        """Whether callers can authenticate by certificates."""
        return self.looked_up or self.front_proxy is not None or self.client_ca_file is not None


@dataclass(frozen=True, slots=True, eq=False)
class AuthenticationMaterial:
    """The CAs that are in use."""

    front_proxy: FrontProxyMaterial | None = None
    clients: Authorities | None = None
    trusted: frozenset[bytes] = frozenset()
    """All certificates that TLS must trust in handshakes, in DER."""


@dataclass(frozen=True, slots=True, eq=False)
class LookedUp:
    """The content of the ConfigMap; None for what it does not contain."""

    front_proxy: FrontProxyMaterial | None = None
    clients: Authorities | None = None


def compose(front_proxy: FrontProxyMaterial | None, clients: Authorities | None) -> AuthenticationMaterial:
    """Return the front proxy's settings and the client CA as one value.

    Raises IdentitySettingsError if every client of the cluster could act for every user: both CAs have an
    authority in common, and no names are required of front proxies.
    """
    if front_proxy and clients and not front_proxy.allowed_names and front_proxy.authorities.keys & clients.keys:
        raise IdentitySettingsError(
            "the request-header CA and the client CA have an authority in common, and no allowed names are set: "
            "the holder of any client certificate could act for any user: set requestheader-allowed-names, or use a CA "
            "of its own for the front proxy"
        )
    trusted: frozenset[bytes] = front_proxy.authorities.certificates if front_proxy else frozenset()
    return AuthenticationMaterial(front_proxy, clients, trusted | (clients.certificates if clients else frozenset()))


class CallerCAs:
    """Holds the material and swaps it. Safe to use from many threads.

    Raises IdentitySettingsError for files that cannot be used at the start. `clock` counts seconds; it only limits how
    often the files are checked.
    """

    def __init__(self, settings: MaterialSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        front_proxy, client_ca_file = settings.front_proxy, settings.client_ca_file
        self._front_proxy_file = AuthorityFile(front_proxy.ca_file, clock) if front_proxy else None
        self._client_file = AuthorityFile(client_ca_file, clock) if client_ca_file else None
        self._lock = threading.Lock()
        self._looked_up = LookedUp()
        self._of_files = self._read_files()
        self._trouble: str | None = None
        self._material = compose(*self._choose_material(self._of_files[0], self._looked_up))

    @property
    def trouble(self) -> str | None:
        """Why the newest content of the sources is not in use; None if it is."""
        return self._trouble

    def current(self) -> AuthenticationMaterial:
        """Return the CAs in use, as the same value until they change."""
        files = self._read_files()
        if files != self._of_files:
            with self._lock:
                self._of_files = files
                self._take()
        return self._material

    def trusted_cas(self) -> frozenset[bytes]:
        """Return the CAs that TLS must trust now, in DER."""
        return self.current().trusted

    def take(self, looked_up: LookedUp) -> None:
        """Load the valid parts of the ConfigMap."""
        with self._lock:
            # Kept even if it is refused: a change of a file may make it usable, and it is handed over only once.
            self._looked_up = looked_up
            self._take()

    def warnings(self) -> tuple[str, ...]:
        """Return warnings about the CAs in use, as whole sentences for the operator."""
        front_proxy = self._material.front_proxy
        return (EVERY_NAME_SPEAKS,) if front_proxy and not front_proxy.allowed_names else ()

    def _take(self) -> None:
        """Replace the CAs in use. The caller holds the lock."""
        try:
            material = compose(*self._choose_material(self._of_files[0], self._looked_up))
        except IdentitySettingsError as e:
            if str(e) != self._trouble:
                _log.error(
                    "authentication material is refused; the last good one stays in use",
                    extra={"fields": {"cause": str(e)}},
                )
            self._trouble = str(e)
            return
        self._trouble = None
        self._material = material
        for warning in self.warnings():
            _log.warning("%s", warning)

    def _read_files(self) -> tuple[Authorities | None, Authorities | None]:
        return (
            self._front_proxy_file.current() if self._front_proxy_file else None,
            self._client_file.current() if self._client_file else None,
        )

    def _choose_material(
        self, of_front_proxy: Authorities | None, looked_up: LookedUp
    ) -> tuple[FrontProxyMaterial | None, Authorities | None]:
        """Return the settings of the flags, and those of the ConfigMap where no flag is set."""
        settings = self.settings.front_proxy
        if settings is None or of_front_proxy is None:
            front_proxy = looked_up.front_proxy
        else:
            front_proxy = FrontProxyMaterial(of_front_proxy, settings.allowed_names, settings.names)
        return front_proxy, self._of_files[1] or looked_up.clients
