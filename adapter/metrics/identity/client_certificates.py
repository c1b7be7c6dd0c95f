"""Authenticates direct callers by client certificates that the cluster's client CA has signed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.metrics.identity.callers import Caller, Peer, UnauthenticatedError, Via, with_authenticated
from adapter.metrics.identity.chains import Anchored, Verdicts, anchored_chain, utc_now

if TYPE_CHECKING:
    from adapter.metrics.identity.authorities import Authorities
    from adapter.metrics.identity.chains import Now


class ClientCertificates:
    """Authenticates direct callers by certificates of the cluster's client CA: `CN` is the user, `O` are the groups.

    A certificate of the request-header CA never makes its holder a user, and one of the client CA never lets its holder
    act for others, because each is only verified with its own bundle. `now` returns the time in UTC.
    """

    def __init__(self, now: Now = utc_now) -> None:
        self._now = now
        self._verdicts: Verdicts[Authorities, tuple[Anchored, Caller] | str | None] = Verdicts(_judge_chain)

    def identify(self, authorities: Authorities, peer: Peer) -> Caller | None:
        """Return the caller that the certificate names; None if another CA signed it. Raises UnauthenticatedError."""
        if not peer.chain:
            return None
        verdict = self._verdicts.of(peer.chain, authorities)
        if verdict is None:
            return None
        if isinstance(verdict, str):
            raise UnauthenticatedError(f"the client certificate names no user: {verdict}")
        found, caller = verdict
        if not found.holds(self._now()):
            raise UnauthenticatedError("the client certificate, or one above it, is expired or not valid yet")
        return caller


def _judge_chain(chain: tuple[bytes, ...], authorities: Authorities) -> tuple[Anchored, Caller] | str | None:
    found = anchored_chain(chain, authorities)
    if not isinstance(found, Anchored):
        return found
    names = found.common_names
    if len(names) != 1 or not names[0]:
        return f"it has {len(names)} common names that are not empty, but exactly one is required"
    groups = with_authenticated(names[0], tuple(found.organizations))
    return found, Caller(names[0], groups, Via.CLIENT_CERTIFICATE)
