"""The one door: every request but health passes here before anything is looked up for it.

kube-apiserver authorises a request before it passes it on, and it does so for the very user, verb and resource that
the request then names here. So a request that came through the verified front proxy is served. Whoever comes directly
would have to be reviewed by access reviews; nobody is, so nobody is served directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.identity.callers import Caller, Peer, UnauthenticatedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.identity.front_proxy import FrontProxy

ONLY_THE_FRONT_PROXY = (
    "Only requests through the verified front proxy (kube-apiserver) are served: direct callers, with a token or "
    "a client certificate of their own, are refused."
)
NO_FRONT_PROXY = (
    "No front proxy is known, so every request but health is refused: give its CA with --requestheader-client-ca-file."
)


class Gate:
    """Lets verified callers in. Without a front proxy it lets nobody in."""

    def __init__(self, front_proxy: FrontProxy | None) -> None:
        self._front_proxy = front_proxy

    def admit(self, peer: Peer, headers: Sequence[tuple[str, str]]) -> Caller:
        """Return who asks; `headers` as received, one entry a line. Raises UnauthenticatedError or ForbiddenError."""
        if self._front_proxy is None:
            raise UnauthenticatedError("this server knows no front proxy (--requestheader-client-ca-file)")
        return self._front_proxy.identify(peer, headers)

    def notes(self) -> tuple[str, ...]:
        """Return sentences for the log at the start: who is served, and what is set more openly than it should be."""
        if self._front_proxy is None:
            return (NO_FRONT_PROXY,)
        return (ONLY_THE_FRONT_PROXY, *self._front_proxy.warnings())
