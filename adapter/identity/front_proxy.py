"""Requests that kube-apiserver passes on: its certificate is verified, then its identity headers are believed.

The rules are those of Kubernetes' request-header authentication (`headerrequest` in `k8s.io/apiserver`): the
certificate comes first, and without a good one the headers are as if they were not there.

TLS hands over a chain that it verified against *every* CA the listener trusts, so a common name alone proves nothing:
somewhere in the chain there must be a certificate of the request-header bundle. A certificate of that bundle is a
trust anchor wherever it stands in the chain, as in Go's verifier: a bundle may hold an intermediate alone, and TLS may
know the root above it from another CA file. What stands above the anchor does not matter.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from adapter.identity.authorities import AuthorityFile
from adapter.identity.callers import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    Caller,
    ForbiddenError,
    IdentitySettingsError,
    Peer,
    UnauthenticatedError,
    Via,
)
from adapter.identity.headers import IdentityHeaders

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from adapter.identity.authorities import Authorities

MOST_CHAINS = 256
"""Verdicts that are remembered. A cluster has as many front proxies as API servers."""

_CLIENT_USAGES = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE})

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FrontProxySettings:
    """What the `--requestheader-…` flags say; header names in any case."""

    ca_file: Path
    allowed_names: tuple[str, ...] = ()
    """Common names that may speak for users; empty: every name that the CA has signed."""
    username_headers: tuple[str, ...] = ("X-Remote-User",)
    group_headers: tuple[str, ...] = ("X-Remote-Group",)
    extra_prefixes: tuple[str, ...] = ("X-Remote-Extra-",)
    uid_headers: tuple[str, ...] = ("X-Remote-Uid",)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What was found about a chain; only the clock can still change it."""

    refusal: str | None
    """Why its certificate may not speak for users; None: it may."""
    valid_from: datetime
    valid_until: datetime
    generation: int
    """Of the bundle that it was judged by."""


class FrontProxy:
    """Recognises requests of the front proxy and who it speaks for.

    `now` gives the time in UTC: certificates end while connections stay open. Raises IdentitySettingsError for
    a CA file or header names that cannot be used.
    """

    def __init__(
        self,
        settings: FrontProxySettings,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(tz=UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _refuse_blank_headers(settings)
        self.settings = settings
        self._authorities = AuthorityFile(settings.ca_file, clock)
        self._headers = IdentityHeaders.named(
            settings.username_headers, settings.group_headers, settings.extra_prefixes, settings.uid_headers
        )
        self._now = now
        self._verdicts: dict[tuple[bytes, ...], _Verdict] = {}
        self._remembering = threading.Lock()

    def identify(self, peer: Peer, headers: Sequence[tuple[str, str]]) -> Caller:
        """Return who the front proxy speaks for.

        `headers` are the request's as received, one entry a line. Raises UnauthenticatedError or ForbiddenError.
        """
        self._require_front_proxy(peer)
        identity = self._headers.read(headers)
        return Caller(
            identity.user,
            _with_authenticated(identity.user, identity.groups),
            Via.FRONT_PROXY,
            identity.uid,
            identity.extra,
        )

    def warnings(self) -> tuple[str, ...]:
        """Return what whoever starts the process should know, in whole sentences."""
        if self.settings.allowed_names:
            return ()
        return (
            (
                "Every certificate that the CA of --requestheader-client-ca-file has signed may speak for any user: "
                "name the front proxy's common name with --requestheader-allowed-names."
            ),
        )

    def _require_front_proxy(self, peer: Peer) -> None:
        if not peer.chain:
            raise UnauthenticatedError("no verified client certificate: requests come through kube-apiserver")
        verdict = self._verdict(peer.chain)
        if not verdict.valid_from <= self._now() <= verdict.valid_until:
            raise UnauthenticatedError("the client certificate, or one above it, is expired or not valid yet")
        if verdict.refusal is not None:
            raise ForbiddenError(f"the client certificate may not speak for users: {verdict.refusal}")

    def _verdict(self, chain: tuple[bytes, ...]) -> _Verdict:
        authorities = self._authorities.current()
        known = self._verdicts.get(chain)
        if known is not None and known.generation == authorities.generation:
            return known
        verdict = _judge(chain, authorities, self.settings.allowed_names)
        if verdict.refusal is not None:
            _log.warning("client certificate refused as front proxy", extra={"fields": {"cause": verdict.refusal}})
        self._remember(chain, verdict)
        return verdict

    def _remember(self, chain: tuple[bytes, ...], verdict: _Verdict) -> None:
        with self._remembering:
            self._verdicts.pop(chain, None)
            if len(self._verdicts) >= MOST_CHAINS:
                del self._verdicts[next(iter(self._verdicts))]
            self._verdicts[chain] = verdict


def _judge(chain: tuple[bytes, ...], authorities: Authorities, allowed_names: tuple[str, ...]) -> _Verdict:
    always = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    anchored = _up_to_anchor(chain, authorities.certificates)
    if anchored is None:
        return _Verdict("it was not issued by the request-header CA", *always, authorities.generation)
    try:
        path = [x509.load_der_x509_certificate(der) for der in anchored]
        refusal = _refusal(path, allowed_names)
    except ValueError:
        return _Verdict("it cannot be read", *always, authorities.generation)
    starts = max(certificate.not_valid_before_utc for certificate in path)
    ends = min(certificate.not_valid_after_utc for certificate in path)
    return _Verdict(refusal, starts, ends, authorities.generation)


def _up_to_anchor(chain: tuple[bytes, ...], anchors: frozenset[bytes]) -> tuple[bytes, ...] | None:
    for length in itertools.count(1):
        if length > len(chain):
            return None
        if chain[length - 1] in anchors:
            return chain[:length]
    return None


def _refusal(path: list[x509.Certificate], allowed_names: tuple[str, ...]) -> str | None:
    if not all(_may_be_a_client(certificate) for certificate in path):
        return "its extended key usage does not allow client authentication"
    if not allowed_names:
        return None
    names = [str(part.value) for part in path[0].subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if len(names) != 1:
        return f"it has {len(names)} common names, where one of --requestheader-allowed-names is required"
    if names[0] not in allowed_names:
        return f"its common name {names[0]!r} is not among --requestheader-allowed-names"
    return None


def _may_be_a_client(certificate: x509.Certificate) -> bool:
    """Return whether the extended key usage allows it; a certificate without one is good for any use (RFC 5280)."""
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return not _CLIENT_USAGES.isdisjoint(usages)


def _with_authenticated(user: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    if user == ANONYMOUS or AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return groups
    return (*groups, AUTHENTICATED)


def _refuse_blank_headers(settings: FrontProxySettings) -> None:
    if not settings.username_headers:
        raise IdentitySettingsError("--requestheader-username-headers is empty: name the header that carries the user")
    listed = (settings.username_headers, settings.group_headers, settings.extra_prefixes, settings.uid_headers)
    if any(not name.strip() for names in listed for name in names):
        raise IdentitySettingsError("a --requestheader-… flag lists an empty header name: remove it")
