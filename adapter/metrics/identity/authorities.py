"""CA bundles, and bundles in files that may be replaced while the process runs.

Kubernetes rotates these CAs: a mounted ConfigMap or Secret changes under the running process. A file is checked at most
once a second, and its last good content stays in use if the new one is unusable.
"""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from adapter.foundation.files.credential_files import followed_credentials
from adapter.foundation.files.file_contents import read_regular
from adapter.metrics.identity.callers import IdentitySettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True, eq=False)
class Authorities:
    """The content of a bundle: each of its certificates is a trust anchor, whether it is a root or not."""

    certificates: frozenset[bytes]
    """The certificates in DER."""
    parsed: tuple[x509.Certificate, ...]

    @property
    def keys(self) -> frozenset[bytes]:
        """The public keys; two bundles that share a key vouch for the same certificates."""
        form = PublicFormat.SubjectPublicKeyInfo
        return frozenset(one.public_key().public_bytes(Encoding.DER, form) for one in self.parsed)


class AuthorityFile:
    """CAs from a PEM file; raises IdentitySettingsError if the file is unusable at startup.

    `clock` returns monotonic seconds, which limit how often the file is checked.
    """

    def __init__(self, file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.file = file
        try:
            self._followed = followed_credentials(
                "CA bundle", [file], lambda: read_bundle(file), clock, (OSError, IdentitySettingsError)
            )
        except OSError as e:
            raise IdentitySettingsError(f"{file}: cannot be read ({e.strerror}): give a PEM file of CAs") from e

    def current(self) -> Authorities:
        """Return the current authorities, as the same value until they change.

        Checks the file if the last check is old enough.
        """
        return self._followed.current()


def read_bundle(file: Path) -> Authorities:
    """Return the content of a PEM file.

    Raises OSError if it cannot be read, IdentitySettingsError if it contains no certificate or a broken one.
    """
    return parse_bundle(read_regular(file), str(file))


def parse_bundle(pem: bytes, source: str) -> Authorities:
    """Return the content of a PEM text; `source` names it in errors.

    Raises IdentitySettingsError if it contains no certificate, or an unusable one. Then the others are not used either,
    because the intention is unclear.
    """
    try:
        certificates = x509.load_pem_x509_certificates(pem)
    except ValueError as e:
        raise IdentitySettingsError(f"{source}: no PEM certificate could be read: {e}: give a PEM file of CAs") from e
    parsed = tuple(dict.fromkeys(certificates))
    encoded = frozenset(certificate.public_bytes(Encoding.DER) for certificate in parsed)
    try:
        # A certificate that OpenSSL cannot use must be found here and not in a handshake.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=b"".join(encoded))
    except ssl.SSLError as e:
        raise IdentitySettingsError(f"{source}: OpenSSL cannot use a certificate in it: {e.reason}") from e
    authorities = Authorities(encoded, parsed)
    try:
        # Each key is read here, because it is read again whenever bundles are compared or a chain is verified.
        _ = authorities.keys
    except (ValueError, UnsupportedAlgorithm) as e:
        raise IdentitySettingsError(f"{source}: the key of a certificate in it cannot be used: {e}") from e
    return authorities
