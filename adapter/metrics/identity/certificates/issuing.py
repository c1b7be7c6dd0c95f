"""Makes certificates: a small certificate authority, and the serving certificates that it signs (pure)."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

AUTHORITY_LIFE = timedelta(days=3650)
SERVING_LIFE = timedelta(days=365)
AUTHORITY_NAME = "tidewatch-ca@"
"""Prefix of the common name of every self-signed authority."""
CLOCK_SKEW = timedelta(hours=1)
"""How long before their creation certificates become valid, because clients' clocks may lag."""

_AUTHORITY_USAGE = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority to sign with."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make_authority(now: datetime, life: timedelta = AUTHORITY_LIFE) -> Authority:
    """Return a new certificate authority, EC P-256, valid for ten years unless another life is given."""
    key = ec.generate_private_key(ec.SECP256R1())
    # The serial in the name keeps two generations apart in clients that find issuers by name.
    serial = x509.random_serial_number()
    name = _name(f"{AUTHORITY_NAME}{serial % 10**8:08d}")
    builder = _builder(name, name, key.public_key(), now, life).serial_number(serial)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_AUTHORITY_USAGE, critical=True)
    return Authority(builder.sign(key, hashes.SHA256()), key)


def make_serving(
    authority: Authority, names: Iterable[str], now: datetime, life: timedelta = SERVING_LIFE
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Return a certificate for these DNS names and IP addresses, signed by the authority, and its key.

    It is valid for a year unless another life is given. The caller must make sure that the authority is valid for at
    least the same time.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    builder = _builder(_name("tidewatch"), issuer.subject, key.public_key(), now, life)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
    builder = builder.add_extension(_authority_identifier(issuer), critical=False)
    return builder.sign(authority.key, hashes.SHA256()), key


def is_self_made(certificate: x509.Certificate) -> bool:
    """Return whether the issuer named in the certificate is an authority made by `make_authority`."""
    names = certificate.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)
    return any(str(name.value).startswith(AUTHORITY_NAME) for name in names)


def belong_together(certificate: x509.Certificate, key: PrivateKeyTypes) -> bool:
    """Return whether the private key belongs to the certificate."""
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return certificate.public_key().public_bytes(*form) == key.public_key().public_bytes(*form)


def is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Return whether the authority's key signed the certificate under its name."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """Return the DNS names and IP addresses that the certificate is for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = (str(address) for address in names.get_values_for_type(x509.IPAddress))
    return frozenset({*names.get_values_for_type(x509.DNSName), *addresses})


def certificate_pem(certificate: x509.Certificate) -> bytes:
    """Return the certificate as PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the key as unencrypted PKCS #8 PEM; write it only to files that only the owner can read."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _authority_identifier(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
