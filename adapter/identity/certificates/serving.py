"""The certificate that the TLS port shows: from files, or made by the process itself when none is given.

A self-made pair is signed by an authority of the process's own, which is kept in the same folder: an APIService whose
`caBundle` holds that authority goes on trusting the server when the pair is renewed. The TLS layer takes renewed files
in by their time of change, so `made_certificate` may be called again at any time.
"""

from __future__ import annotations

import ipaddress
import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from adapter.identity.callers import IdentitySettingsError
from adapter.identity.certificates import issuing
from adapter.identity.certificates.issuing import Authority

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

AUTHORITY_CERTIFICATE = "tidewatch-ca.crt"
AUTHORITY_KEY = "tidewatch-ca.key"
CERTIFICATE = "apiserver.crt"
"""As Kubernetes' own servers name the pair in their `--cert-dir`."""
KEY = "apiserver.key"

LEAST_LIFE_LEFT = 1 / 3
"""Share of its life that a self-made certificate must still have; with less it is renewed."""


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """The files of the TLS port."""

    certificate_file: Path
    key_file: Path
    ca_file: Path | None
    """The self-made authority, for clients to trust; None where the files were given."""
    not_after: datetime


def given_certificate(certificate_file: Path, key_file: Path) -> ServingCertificate:
    """Return a pair that was given as files.

    Raises IdentitySettingsError if one cannot be read or they do not belong together. One that is expired is returned
    (`not_after` tells): whoever issues it may renew the files while the process runs.
    """
    certificate, _ = _read_pair(certificate_file, key_file)
    return ServingCertificate(certificate_file, key_file, None, certificate.not_valid_after_utc)


def made_certificate(
    folder: Path, names: Iterable[str], *, hostname: str, now: datetime | None = None
) -> ServingCertificate:
    """Return the self-made pair of the folder, made or renewed as needed.

    It is for `names`, the host's name, localhost, 127.0.0.1 and ::1. A good pair that somebody else put into the folder
    is used as it is. Raises IdentitySettingsError if the folder cannot be written.
    """
    at = now or datetime.now(tz=UTC)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _found_or_made(folder, _all_names(names, hostname), at)
    except OSError as e:
        raise IdentitySettingsError(
            f"{folder}: no serving certificate can be kept there ({e.strerror}): "
            "give a writable --cert-dir, or --tls-cert-file and --tls-private-key-file"
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
    return ServingCertificate(
        certificate_file, key_file, folder / AUTHORITY_CERTIFICATE, certificate.not_valid_after_utc
    )


def _known_authority(folder: Path, now: datetime) -> Authority | None:
    """Return the authority of an earlier start; None if there is none, or it is broken or near its end."""
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
    """Return the self-made certificate of an earlier start if it is as a new one would be, and not yet near its end."""
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
            f"{certificate_file}: expired, and not made by this program: renew it, or remove it to have one made"
        )
    return given


def _life_left(certificate: x509.Certificate, now: datetime) -> float:
    """Return the share of its life that is left; 0 or less where it is over, or has not begun."""
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
        raise IdentitySettingsError(f"{key_file}: not an unencrypted private key in PEM: give one") from e
    if not issuing.belong_together(certificate, key):
        raise IdentitySettingsError(f"{key_file}: not the key of {certificate_file}: give the two that belong together")
    return certificate, key


def _read_certificate(file: Path) -> x509.Certificate:
    pem = _read(file)
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as e:
        raise IdentitySettingsError(f"{file}: no certificate in PEM: {e}: give one, the server's own first") from e


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as e:
        raise IdentitySettingsError(f"{file}: cannot be read ({e.strerror}): check the path and its permissions") from e


def _write_pair(
    certificate_file: Path, key_file: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> None:
    """Write both files, each whole or not at all; after a crash in between they do not match, and are made anew."""
    write_whole(key_file, issuing.key_pem(key), mode=0o600)
    write_whole(certificate_file, issuing.certificate_pem(certificate), mode=0o644)


def write_whole(file: Path, content: bytes, mode: int) -> None:
    """Replace a file by one with this content, so that nobody ever reads half of it. Raises OSError."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    written = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as out:
            os.fchmod(out.fileno(), mode)
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        written.replace(file)
    except OSError:
        written.unlink(missing_ok=True)
        raise
