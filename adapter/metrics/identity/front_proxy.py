"""Requests that kube-apiserver passes on: its certificate is verified, then its identity headers are believed.

The rules are those of Kubernetes' request-header authentication (`headerrequest` in `k8s.io/apiserver`): the
certificate comes first, and without a valid one the headers are ignored.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.metrics.identity.callers import (
    AccessForbiddenError,
    Caller,
    Peer,
    UnauthenticatedError,
    Via,
    with_authenticated,
)
from adapter.metrics.identity.chains import Anchored, Verdicts, anchored_chain, utc_now
from adapter.metrics.identity.headers import HeaderNames, IdentityHeaders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.metrics.identity.authorities import Authorities
    from adapter.metrics.identity.chains import Now

MOST_CALLERS = 4096
"""Limit on the callers cached by their header lines. A cluster has few callers, which repeat their requests."""
MOST_HEADER_NAMES = 1024

_log = logging.getLogger(__name__)


class CallerReader:
    """Reads callers from header lines, and caches them by these lines."""

    def __init__(self, names: HeaderNames) -> None:
        self._headers = IdentityHeaders(names)
        self._foreign: frozenset[str] = frozenset()
        """Known names of headers that carry no part of an identity."""
        self._known: dict[tuple[tuple[str, str], ...], Caller] = {}
        self._lock = threading.Lock()

    def read(self, headers: Sequence[tuple[str, str]]) -> Caller:
        """Return the caller in the headers; call it only for a verified front proxy.

        `headers` are the request's as received, one entry a line. Raises UnauthenticatedError.
        """
        foreign = self._foreign
        known = self._known.get(tuple([line for line in headers if line[0] not in foreign]))
        return known or self._read_caller(headers)

    def _read_caller(self, headers: Sequence[tuple[str, str]]) -> Caller:
        """Read the headers, and cache the caller and the names of irrelevant headers."""
        lines = tuple(line for line in headers if self._headers.are_in(line[0]))
        with self._lock:
            caller = self._known.get(lines)
            if len(self._foreign) < MOST_HEADER_NAMES:
                self._foreign |= {name for name, _ in headers} - {name for name, _ in lines}
        if caller is not None:
            return caller
        identity = self._headers.read(lines)
        groups = with_authenticated(identity.user, identity.groups)
        caller = Caller(identity.user, groups, Via.FRONT_PROXY, identity.uid, identity.extra)
        with self._lock:
            if len(self._known) >= MOST_CALLERS:
                del self._known[next(iter(self._known))]
            self._known[lines] = caller
        return caller


@dataclass(frozen=True, slots=True, eq=False)
class FrontProxyMaterial:
    """How a front proxy is verified, and in which headers it names the user."""

    authorities: Authorities
    allowed_names: tuple[str, ...] = ()
    """Common names that are allowed to impersonate users; if empty, all names in the CA's certificates are."""
    names: HeaderNames = field(default_factory=HeaderNames)
    callers: CallerReader = field(init=False)

    def __post_init__(self) -> None:
        """Create the reader for these headers."""
        object.__setattr__(self, "callers", CallerReader(self.names))


class FrontProxies:
    """Authenticates requests through front proxies.

    `now` returns the time in UTC, since certificates may expire while connections stay open.
    """

    def __init__(self, now: Now = utc_now) -> None:
        self._now = now
        self._verdicts: Verdicts[FrontProxyMaterial, Anchored | str | None] = Verdicts(_judge_chain)

    def identify(self, material: FrontProxyMaterial, peer: Peer, headers: Sequence[tuple[str, str]]) -> Caller | None:
        """Return the caller that the front proxy names; None if the peer is not a front proxy.

        Raises UnauthenticatedError or AccessForbiddenError for a certificate of its CA that is not good enough, and for
        headers that name no user.
        """
        if not peer.chain:
            return None
        verdict = self._verdicts.of(peer.chain, material)
        if verdict is None:
            return None
        if isinstance(verdict, str):
            raise AccessForbiddenError(f"the client certificate may not act for users: {verdict}")
        if not verdict.holds(self._now()):
            raise UnauthenticatedError("the client certificate, or one above it, is expired or not valid yet")
        return material.callers.read(headers)


def _judge_chain(chain: tuple[bytes, ...], material: FrontProxyMaterial) -> Anchored | str | None:
    """Return the chain, or why its certificate is refused; None if the front proxy's CA has not signed it."""
    found = anchored_chain(chain, material.authorities)
    refusal = _refusal(found, material.allowed_names) if isinstance(found, Anchored) else found
    if refusal is None:
        return found
    _log.warning("client certificate refused as front proxy", extra={"fields": {"cause": refusal}})
    return refusal


def _refusal(found: Anchored, allowed_names: tuple[str, ...]) -> str | None:
    if not allowed_names:
        return None
    names = found.common_names
    if len(names) != 1:
        return f"it has {len(names)} common names, where one of --requestheader-allowed-names is required"
    if names[0] not in allowed_names:
        return f"its common name {names[0]!r} is not among --requestheader-allowed-names"
    return None
