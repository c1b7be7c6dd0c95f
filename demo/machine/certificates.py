"""Temporary certificates: real TLS for the demo and the tests, without a cluster that issues them.

An `Authority` is a certificate authority that lives as long as its folder. It signs the certificates of servers and of
clients, directly or through an intermediate. All keys are EC P-256, which are quick to make, and all certificates are
valid for a day unless a test requests other times.
"""

from __future__ import annotations

import ipaddress
import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CLIENT = (ExtendedKeyUsageOID.CLIENT_AUTH,)
SERVER = (ExtendedKeyUsageOID.SERVER_AUTH,)


@dataclass(frozen=True, slots=True)
class Validity:
    """The validity of a certificate, in UTC."""

    start: datetime
    end: datetime

    @classmethod
    def of_one_day(cls) -> Validity:
        """Return a validity until a day from now; it began an hour ago, so that clocks may differ."""
        now = datetime.now(tz=UTC)
        return cls(now - timedelta(hours=1), now + timedelta(days=1))


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, as PEM files and in memory.

    `certificate_file` holds the leaf and, if there is one, the intermediate that signed it. `chain` holds the
    certificates in DER from the leaf to the root, like a verified chain.
    """

    certificate_file: Path
    key_file: Path
    ca_file: Path
    chain: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class _Signer:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


class Authority:
    """A certificate authority in `folder`; `ca_file` holds its root.

    With `intermediate=True`, leaves are signed by an intermediate, which their certificate files include.
    """

    def __init__(self, folder: Path, name: str = "throw-away-ca", *, intermediate: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._serial = itertools.count(1)
        self._root = _self_signed(name)
        self._middle = _signed_authority(f"{name}-intermediate", self._root) if intermediate else None
        self.ca_file = folder / "ca.crt"
        self.ca_file.write_bytes(_pem(self._root.certificate))

    @property
    def root(self) -> x509.Certificate:
        """Return the root certificate."""
        return self._root.certificate

    @property
    def intermediate(self) -> x509.Certificate | None:
        """Return the intermediate certificate, if there is one."""
        return self._middle.certificate if self._middle else None

    def server(
        self,
        dns_names: Sequence[str] = ("localhost",),
        ips: Sequence[str] = ("127.0.0.1",),
        *,
        validity: Validity | None = None,
    ) -> KeyPair:
        """Return a certificate with which a server identifies itself under these names and addresses."""
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in dns_names]
        names += [x509.IPAddress(ipaddress.ip_address(ip)) for ip in ips]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, dns_names[0] if dns_names else ips[0])])
        return self._issue("server", subject, names, SERVER, validity)

    def client(
        self,
        common_name: str,
        organizations: Sequence[str] = (),
        *,
        usages: Sequence[ObjectIdentifier] = CLIENT,
        validity: Validity | None = None,
    ) -> KeyPair:
        """Return a certificate for a caller: Kubernetes reads the common name as user, the organizations as groups.

        If `usages` is empty, the certificate has no extended key usage extension.
        """
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        return self._issue("client", subject, [], usages, validity)

    def _issue(
        self,
        role: str,
        subject: x509.Name,
        names: Sequence[x509.GeneralName],
        usages: Sequence[ObjectIdentifier],
        validity: Validity | None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        signer = self._middle or self._root
        builder = _builder(subject, signer.certificate.subject, key.public_key(), validity or Validity.of_one_day())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_issued_by(signer.certificate), critical=False)
        if usages:
            builder = builder.add_extension(x509.ExtendedKeyUsage(list(usages)), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return self._write(role, builder.sign(signer.key, hashes.SHA256()), key)

    def _write(self, role: str, leaf: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
        stem = f"{role}-{next(self._serial)}"
        certificate_file, key_file = self._folder / f"{stem}.crt", self._folder / f"{stem}.key"
        shown = [leaf, *([self._middle.certificate] if self._middle else [])]
        certificate_file.write_bytes(b"".join(map(_pem, shown)))
        key_file.touch(mode=0o600)
        key_file.write_bytes(_key_pem(key))
        chain = tuple(
            certificate.public_bytes(serialization.Encoding.DER) for certificate in [*shown, self._root.certificate]
        )
        return KeyPair(certificate_file, key_file, self.ca_file, chain)


def _self_signed(name: str) -> _Signer:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = _authority_builder(subject, subject, key.public_key())
    return _Signer(builder.sign(key, hashes.SHA256()), key)


def _signed_authority(name: str, signer: _Signer) -> _Signer:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = _authority_builder(subject, signer.certificate.subject, key.public_key())
    builder = builder.add_extension(_issued_by(signer.certificate), critical=False)
    return _Signer(builder.sign(signer.key, hashes.SHA256()), key)


def _authority_builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    signs_only = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        _builder(subject, issuer, key, Validity.of_one_day())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(signs_only, critical=True)
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, validity: Validity
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(validity.start)
        .not_valid_after(validity.end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _issued_by(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier.value)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
