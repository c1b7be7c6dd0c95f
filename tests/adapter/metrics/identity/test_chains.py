"""Which certificates of a chain decide whether it is anchored in a bundle, for what it may be used, and how long."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from adapter.metrics.identity.authorities import Authorities, parse_bundle
from adapter.metrics.identity.chains import Anchored, anchored_chain

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
KEYS = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("root", "middle", "leaf")}


@dataclass(frozen=True)
class Made:
    """A certificate to be made; the keys of subject and issuer are those of the first words of their names."""

    subject: str
    issuer: str
    hours: tuple[int, int] = (-9, 9)
    """Its validity, from noon."""
    usages: tuple[ObjectIdentifier, ...] = ()

    @property
    def certificate(self) -> x509.Certificate:
        subject, issuer = (
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (self.subject, self.issuer)
        )
        key, signer = (KEYS[name.split()[0]] for name in (self.subject, self.issuer))
        starts, ends = (NOON + timedelta(hours=hours) for hours in self.hours)
        builder = (
            x509.CertificateBuilder(subject, issuer, key.public_key(), x509.random_serial_number(), starts, ends)
        ).add_extension(x509.BasicConstraints(ca=key is not KEYS["leaf"], path_length=None), critical=True)
        if self.usages:
            builder = builder.add_extension(x509.ExtendedKeyUsage(self.usages), critical=False)
        return builder.sign(signer, SHA256())


def anchored(chain: list[x509.Certificate], bundle: x509.Certificate) -> Anchored | str | None:
    return anchored_chain(tuple(one.public_bytes(Encoding.DER) for one in chain), bundle_of(bundle))


def bundle_of(certificate: x509.Certificate) -> Authorities:
    return parse_bundle(certificate.public_bytes(Encoding.PEM), "bundle")


LEAF, MIDDLE, ROOT = Made("leaf", "middle", (-5, 5)), Made("middle", "root", (-4, 4)), Made("root", "root", (-3, 3))


@pytest.mark.parametrize(
    ("anchor", "hours"),
    [
        pytest.param(ROOT, (-3, 3), id="every certificate up to the anchor counts"),
        pytest.param(MIDDLE, (-4, 4), id="those above the anchor do not"),
        pytest.param(Made("root", "root", (-2, 2)), (-2, 2), id="a CA renewed with its old key counts instead of it"),
    ],
)
def test_a_chain_is_valid_while_all_from_the_leaf_to_the_anchor_are(anchor: Made, hours: tuple[int, int]) -> None:
    leaf, middle, root = LEAF.certificate, MIDDLE.certificate, ROOT.certificate
    known = {ROOT: root, MIDDLE: middle}
    found = anchored([leaf, middle, root], known.get(anchor) or anchor.certificate)
    assert isinstance(found, Anchored)
    assert (found.valid_from, found.valid_until) == tuple(NOON + timedelta(hours=offset) for offset in hours)
    assert found.holds(found.valid_from)
    assert found.holds(found.valid_until)
    assert not found.holds(found.valid_from - timedelta(seconds=1))
    assert not found.holds(found.valid_until + timedelta(seconds=1))


def test_a_ca_of_servers_signs_no_clients() -> None:
    """As in Go's verifier, the usages of each certificate limit those below it."""
    middle = Made("middle", "root", usages=(ExtendedKeyUsageOID.SERVER_AUTH,)).certificate
    root = ROOT.certificate
    found = anchored([LEAF.certificate, middle, root], root)
    assert found == "its extended key usage does not allow client authentication"


def test_an_authority_of_another_name_is_no_anchor_although_it_has_the_same_key() -> None:
    chain = [LEAF.certificate, MIDDLE.certificate, ROOT.certificate]
    assert anchored(chain, Made("root of others", "root of others").certificate) is None
