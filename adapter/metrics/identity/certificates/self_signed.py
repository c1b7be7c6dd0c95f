"""The certificate of the TLS port without a Secret: self-signed in a folder and renewed there, or from given files.

A self-made pair is signed by an authority that is kept in the same folder, so an APIService with that authority in its
`caBundle` still trusts the server when the pair is renewed. The TLS layer reloads files when their modification time
changes, so `made_certificate` may be called again at any time.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from adapter.foundation.files.file_contents import read_regular
from adapter.foundation.files.replaced_file import replace_file
from adapter.metrics.identity.callers import IdentitySettingsError
from adapter.metrics.identity.certificates import issuing
from adapter.metrics.identity.certificates.issuing import Authority

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

AUTHORITY_CERTIFICATE = "tidewatch-ca.crt"
AUTHORITY_KEY = "tidewatch-ca.key"
CERTIFICATE = "apiserver.crt"
"""File names that Kubernetes's servers also use in their `--cert-dir`."""
KEY = "apiserver.key"

LEAST_LIFE_LEFT = 1 / 3
"""Share of its life that a self-made certificate must have left; with less, it is renewed."""
_EARLIEST = datetime(2025, 1, 1, tzinfo=UTC)
"""A clock that shows an earlier time is not set: this program is newer."""


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """The certificate and key files of the TLS port."""

    certificate_file: Path
    key_file: Path
    ca_file: Path | None
    """The self-made authority, which people must make clients trust; None if there is none, or a Secret keeps it."""
    not_before: datetime
    not_after: datetime

    @classmethod
    def of(
        cls, certificate: x509.Certificate, certificate_file: Path, key_file: Path, ca_file: Path | None = None
    ) -> Self:
        """Return the files that hold the certificate, with its dates."""
        dates = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return cls(certificate_file, key_file, ca_file, *dates)


def given_certificate(certificate_file: Path, key_file: Path) -> ServingCertificate:
    """Return the pair in the files that flags name.

    Raises IdentitySettingsError if a file cannot be read or the two do not belong together. An expired pair is returned
    (see `not_after`), because its issuer may renew the files while the process runs.
    """
    certificate, _ = _read_pair(certificate_file, key_file)
    return ServingCertificate.of(certificate, certificate_file, key_file)


def made_certificate(
    folder: Path, names: Iterable[str], *, hostname: str, now: datetime | None = None
) -> ServingCertificate:
    """Return the self-made pair of the folder, made or renewed as needed.

    It is for `names`, the host's name, localhost, 127.0.0.1 and ::1. A good pair that was put into the folder by others
    is used unchanged. Raises IdentitySettingsError if the folder cannot be written.
    """
    at = now or datetime.now(tz=UTC)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _found_or_made(folder, _all_names(names, hostname), at)
    except OSError as e:
        raise IdentitySettingsError(
            f"{folder}: cannot store a serving certificate there ({e.strerror}): "
            "set --cert-dir to a writable folder, or set --tls-cert-file and --tls-private-key-file"
        ) from e


def _found_or_made(folder: Path, names: frozenset[str], now: datetime) -> ServingCertificate:
    certificate_file, key_file = folder / CERTIFICATE, folder / KEY
    if certificate_file.exists() and not issuing.is_self_made(_read_certificate(certificate_file)):
        return _foreign(certificate_file, key_file, now)
    authority = _known_authority(folder, now)
    if authority is None:
        authority = issuing.make_authority(now)
        _write_pair(folder / AUTHORITY_CERTIFICATE, folder / AUTHORITY_KEY, authority.certificate, authority.key)
    certificate = _good_certificate(certificate_file, key_file, authority, names, now)
    if certificate is None:
        certificate, key = issuing.make_serving(authority, sorted(names), now)
        _write_pair(certificate_file, key_file, certificate, key)
    return ServingCertificate.of(certificate, certificate_file, key_file, folder / AUTHORITY_CERTIFICATE)


def _known_authority(folder: Path, now: datetime) -> Authority | None:
    """Return the authority of an earlier start; None if there is none, or it is broken or expires soon."""
    try:
        certificate, key = _read_pair(folder / AUTHORITY_CERTIFICATE, folder / AUTHORITY_KEY)
    except IdentitySettingsError:
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or _life_left(certificate, now) <= LEAST_LIFE_LEFT:
        return None
    return Authority(certificate, key)


def _good_certificate(
    certificate_file: Path, key_file: Path, authority: Authority, names: frozenset[str], now: datetime
) -> x509.Certificate | None:
    """Return the self-made certificate of an earlier start if it equals a new one and does not expire soon."""
    try:
        certificate, _ = _read_pair(certificate_file, key_file)
    except IdentitySettingsError:
        return None
    good = (
        issuing.is_signed_by(certificate, authority.certificate)
        and issuing.names_of(certificate) == names
        and _life_left(certificate, now) > LEAST_LIFE_LEFT
    )
    return certificate if good else None


def _foreign(certificate_file: Path, key_file: Path, now: datetime) -> ServingCertificate:
    given = given_certificate(certificate_file, key_file)
    if given.not_after <= now:
        raise IdentitySettingsError(
            f"{certificate_file}: expired, and not made by this program: renew it, or remove it so that a new one is "
            "made"
        )
    return given


def _life_left(certificate: x509.Certificate, now: datetime) -> float:
    """Return the share of its life that is left; 0 or less if it has expired or is not valid yet.

    A clock that has not been set since the machine started judges nothing: clients trust the authority in the folder.
    """
    if now < _EARLIEST:
        return 1.0
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return (end - now) / (end - start) if start <= now else 0.0


def _all_names(names: Iterable[str], hostname: str) -> frozenset[str]:
    wanted = [*names, hostname, "localhost", "127.0.0.1", "::1"]
    return frozenset(_canonical(name) for name in wanted if name and name.isascii())


def _canonical(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name.lower()


def _read_pair(certificate_file: Path, key_file: Path) -> tuple[x509.Certificate, PrivateKeyTypes]:
    certificate = _read_certificate(certificate_file)
    pem = _read(key_file)
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as e:
        raise IdentitySettingsError(f"{key_file}: not an unencrypted private key in PEM: name a file with one") from e
    if not issuing.belong_together(certificate, key):
        raise IdentitySettingsError(
            f"{key_file}: not the key of {certificate_file}: name two files that belong together"
        )
    return certificate, key


def _read_certificate(file: Path) -> x509.Certificate:
    pem = _read(file)
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as e:
        raise IdentitySettingsError(
            f"{file}: no certificate in PEM: {e}: name a file that begins with the server's certificate"
        ) from e


def _read(file: Path) -> bytes:
    try:
        return read_regular(file)
    except OSError as e:
        raise IdentitySettingsError(f"{file}: cannot be read ({e.strerror}): check the path and its permissions") from e


def _write_pair(
    certificate_file: Path, key_file: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> None:
    """Write both files atomically; after a crash in between they do not match, and are made again."""
    replace_file(key_file, issuing.key_pem(key), mode=0o600)
    replace_file(certificate_file, issuing.certificate_pem(certificate), mode=0o644)
