"""Finds the bundle in which a client's certificate chain is anchored, and the time in which the chain is valid.

TLS provides a chain that it verified against *every* CA that the listener trusts, so a name alone proves nothing: each
way of authentication requires an anchor in its own bundle. As in Go's verifier, a certificate of the bundle is an
anchor wherever it stands in the chain, and so is one that has signed a certificate of the chain: TLS builds only one
chain, which may end in another CA's copy of the same authority. So a CA that was renewed with its old key still
verifies open connections. Certificates above the anchor do not matter.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from adapter.metrics.identity.certificates.issuing import is_signed_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.metrics.identity.authorities import Authorities

    Now = Callable[[], datetime]

MOST_CHAINS = 256
"""Limit on the cached verdicts of each kind. A cluster has as many front proxies as API servers."""

M = TypeVar("M")
V = TypeVar("V")

_CLIENT_USAGES = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE})


@dataclass(frozen=True, slots=True)
class Anchored:
    """A chain that ends in the bundle. From then on its validity depends only on the time."""

    leaf: x509.Certificate
    valid_from: datetime
    valid_until: datetime
    """The end of the period in which every certificate of the chain is valid."""

    def holds(self, now: datetime) -> bool:
        """Return whether no certificate of the chain is expired, or not valid yet."""
        return self.valid_from <= now <= self.valid_until

    @property
    def common_names(self) -> list[str]:
        """The leaf's common names; a usable certificate has exactly one."""
        return self._subject_values(NameOID.COMMON_NAME)

    @property
    def organizations(self) -> list[str]:
        """The leaf's organizations, in order."""
        return self._subject_values(NameOID.ORGANIZATION_NAME)

    def _subject_values(self, oid: x509.ObjectIdentifier) -> list[str]:
        return [str(part.value) for part in self.leaf.subject.get_attributes_for_oid(oid)]


def anchored_chain(chain: tuple[bytes, ...], authorities: Authorities) -> Anchored | str | None:
    """Return the chain as it is anchored in the bundle, or why it cannot be used; None if it is not anchored there."""
    try:
        path = _path(chain, authorities)
        if path is None:
            return None
        if not all(_may_be_a_client(certificate) for certificate in path):
            return "its extended key usage does not allow client authentication"
        starts = max(certificate.not_valid_before_utc for certificate in path)
        ends = min(certificate.not_valid_after_utc for certificate in path)
    except ValueError:
        return "it cannot be read"
    return Anchored(path[0], starts, ends)


class Verdicts(Generic[M, V]):
    """Cache of the verdicts about chains, which is valid until the CAs change."""

    def __init__(self, judge: Callable[[tuple[bytes, ...], M], V]) -> None:
        self._judge = judge
        self._known: dict[tuple[bytes, ...], tuple[M, V]] = {}
        self._lock = threading.Lock()

    def of(self, chain: tuple[bytes, ...], material: M) -> V:
        """Return the verdict about the chain by exactly this material."""
        known = self._known.get(chain)
        if known is not None and known[0] is material:
            return known[1]
        verdict = self._judge(chain, material)
        with self._lock:
            self._known.pop(chain, None)
            if len(self._known) >= MOST_CHAINS:
                del self._known[next(iter(self._known))]
            self._known[chain] = (material, verdict)
        return verdict

    def __len__(self) -> int:
        """Return the number of cached verdicts."""
        return len(self._known)


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(tz=UTC)


def _path(chain: tuple[bytes, ...], authorities: Authorities) -> list[x509.Certificate] | None:
    """Return the certificates from the leaf to the anchor inclusive."""
    for length, der in enumerate(chain, 1):
        if der in authorities.certificates:
            return [x509.load_der_x509_certificate(one) for one in chain[:length]]
    below = []
    for der in chain:
        below.append(x509.load_der_x509_certificate(der))
        for anchor in authorities.parsed:
            if _has_signed(anchor, below[-1]):
                return [*below, anchor]
    return None


def _has_signed(anchor: x509.Certificate, certificate: x509.Certificate) -> bool:
    return certificate.issuer == anchor.subject and _may_sign(anchor) and is_signed_by(certificate, anchor)


def _may_sign(anchor: x509.Certificate) -> bool:
    """Return whether the anchor is a CA; a bundle may contain a client's own certificate, which cannot sign others."""
    try:
        return anchor.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _may_be_a_client(certificate: x509.Certificate) -> bool:
    """Return whether the extended key usage allows client authentication; without one, all are allowed (RFC 5280)."""
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return not _CLIENT_USAGES.isdisjoint(usages)
