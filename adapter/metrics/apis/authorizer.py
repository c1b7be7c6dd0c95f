"""The interface that the APIs need from identity. Tests of the APIs implement it with made-up callers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.metrics.identity.attributes import Attributes
    from adapter.metrics.identity.callers import Caller, Peer, RequestedAccess


class RequestAuthorizer(Protocol):
    """Authenticates callers and authorizes what they ask for. `Gate` is one."""

    def check(self, asked: RequestedAccess) -> Caller:
        """Return the caller of a request that the caller is allowed to make. Raises IdentityError."""
        ...

    def identify(self, peer: Peer, headers: Sequence[tuple[str, str]]) -> Caller:
        """Return the caller, who is not authorized yet. Raises IdentityError."""
        ...

    def authorize_unrouted(self, caller: Caller, attributes: Attributes) -> None:
        """Raise IdentityError unless the caller is allowed to use a path that kube-apiserver does not pass on."""
        ...
