"""Bundles of certificate authorities: what is in one, and one in a file that may be replaced while the process runs.

Kubernetes rotates these authorities: a ConfigMap or Secret that is mounted changes under the running process. A file is
looked at at most once a second, and the last good content stays when the new one cannot be used.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from adapter.identity.callers import IdentitySettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOOK_EVERY_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Authorities:
    """The content of a bundle: every certificate of it is a trust anchor, root or not."""

    certificates: frozenset[bytes]
    """In DER."""
    parsed: tuple[x509.Certificate, ...]

    @property
    def keys(self) -> frozenset[bytes]:
        """The public keys: two bundles that share one vouch for the same certificates."""
        form = PublicFormat.SubjectPublicKeyInfo
        return frozenset(one.public_key().public_bytes(Encoding.DER, form) for one in self.parsed)


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What tells one version of a file from another without reading it."""

    modified_ns: int
    inode: int
    size: int


class AuthorityFile:
    """Certificate authorities from a PEM file; raises IdentitySettingsError if the file is unusable at the start.

    `clock` counts seconds and never goes back; it only spaces the looks at the file.
    """

    def __init__(self, file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.file = file
        self._clock = clock
        self._looking = threading.Lock()
        self._next_look = clock() + LOOK_EVERY_SECONDS
        self._trouble: str | None = None
        try:
            self._stamp = _stamp(file)
            self._current = read_bundle(file)
        except OSError as e:
            raise IdentitySettingsError(f"{file}: cannot be read ({e.strerror}): give a PEM file of CAs") from e

    def current(self) -> Authorities:
        """Return the authorities that hold now, the same value until they change.

        Looks at the file when the last look is old enough.
        """
        if self._clock() >= self._next_look and self._looking.acquire(blocking=False):
            try:
                self._next_look = self._clock() + LOOK_EVERY_SECONDS
                self._look()
            finally:
                self._looking.release()
        return self._current

    def _look(self) -> None:
        try:
            stamp = _stamp(self.file)
            if stamp == self._stamp:
                return
            authorities = read_bundle(self.file)
        except (OSError, IdentitySettingsError) as e:
            self._report(str(e))
            return
        self._stamp, self._trouble = stamp, None
        self._current = authorities
        about = {"file": str(self.file), "certificates": len(authorities.certificates)}
        _log.info("CA bundle taken in", extra={"fields": about})

    def _report(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            about = {"file": str(self.file), "cause": trouble}
            _log.warning("CA bundle cannot be used, the last good one stays", extra={"fields": about})


def read_bundle(file: Path) -> Authorities:
    """Return what a PEM file holds.

    Raises OSError if it cannot be read, IdentitySettingsError if it holds no certificate or a broken one.
    """
    return parse_bundle(file.read_bytes(), str(file))


def parse_bundle(pem: bytes, source: str) -> Authorities:
    """Return what a PEM text holds; `source` names it in errors.

    Raises IdentitySettingsError if there is no certificate in it, or one that cannot be used: then the others are not
    used either, since nobody can tell what was meant.
    """
    try:
        certificates = x509.load_pem_x509_certificates(pem)
    except ValueError as e:
        raise IdentitySettingsError(f"{source}: no PEM certificate could be read: {e}: give a PEM file of CAs") from e
    parsed = tuple(dict.fromkeys(certificates))
    encoded = frozenset(certificate.public_bytes(Encoding.DER) for certificate in parsed)
    try:
        # What the handshake cannot use must not be found out by the handshake.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=b"".join(encoded))
    except ssl.SSLError as e:
        raise IdentitySettingsError(f"{source}: OpenSSL cannot use a certificate in it: {e.reason}") from e
    return Authorities(encoded, parsed)


def _stamp(file: Path) -> _Stamp:
    seen = file.stat()
    return _Stamp(seen.st_mtime_ns, seen.st_ino, seen.st_size)
