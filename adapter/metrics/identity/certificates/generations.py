"""A generation: an authority, and the one certificate that it has signed.

The authority's key is discarded as soon as it has signed. A reader of the Secret can then serve under the names of this
one certificate until it expires, but cannot sign others: trusting the authority means trusting this certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from adapter.metrics.identity.certificates import issuing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime, timedelta

    Issue: TypeAlias = "Callable[[Iterable[str]], Generation]"
    """Makes a generation for these DNS names."""

ROTATED_AT = 2 / 3
"""Share of its life after which a certificate is replaced."""


class GenerationError(ValueError):
    """The PEM texts are not a certificate with its key and authority; the message says why and contains no secret."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A certificate, its key, and the authority that clients must trust."""

    authority: x509.Certificate
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False, compare=False)

    def is_expired(self, now: datetime) -> bool:
        """Return whether the certificate has expired."""
        return now >= self.certificate.not_valid_after_utc

    def is_due(self, now: datetime) -> bool:
        """Return whether two thirds of its life are over, or it starts so far in the future that a clock was wrong."""
        end = self.certificate.not_valid_after_utc
        made = self.certificate.not_valid_before_utc + issuing.CLOCK_SKEW
        return now >= made + (end - made) * ROTATED_AT or now < self.certificate.not_valid_before_utc

    def covers(self, names: Iterable[str]) -> bool:
        """Return whether the certificate is for all these names."""
        return set(names) <= issuing.names_of(self.certificate)


def make_generation(names: Iterable[str], now: datetime, life: timedelta) -> Generation:
    """Return a new generation that is valid from an hour ago until `life` from now."""
    authority = issuing.make_authority(now, life)
    certificate, key = issuing.make_serving(authority, sorted(names), now, life)
    return Generation(authority.certificate, certificate, key)


def read_generation(certificate_pem: bytes, key_pem: bytes, authorities: Iterable[x509.Certificate]) -> Generation:
    """Return the generation that these texts hold; raises GenerationError."""
    try:
        certificate = x509.load_pem_x509_certificate(certificate_pem)
    except ValueError as e:
        raise GenerationError("no certificate in PEM") from e
    try:
        key = load_pem_private_key(key_pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as e:
        raise GenerationError("no unencrypted private key in PEM") from e
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not issuing.belong_together(certificate, key):
        raise GenerationError("the key is not the certificate's")
    for authority in authorities:
        if issuing.is_signed_by(certificate, authority):
            return Generation(authority, certificate, key)
    raise GenerationError("the authority that signed the certificate is missing")


def read_authorities(pem: bytes) -> tuple[x509.Certificate, ...]:
    """Return the distinct certificates of a bundle, which may be empty. Raises GenerationError for a broken one."""
    if not pem.strip():
        return ()
    try:
        return tuple(dict.fromkeys(x509.load_pem_x509_certificates(pem)))
    except ValueError as e:
        raise GenerationError("no certificates in PEM") from e


def bundle_pem(authorities: Iterable[x509.Certificate]) -> bytes:
    """Return the certificates as one PEM text."""
    return b"".join(map(issuing.certificate_pem, authorities))
