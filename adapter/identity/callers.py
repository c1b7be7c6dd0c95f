"""The values of identity: what TLS has proven about a peer, and who is asking in the end.

Errors carry the HTTP status that Kubernetes' API servers give for them, and a message that is safe to show to the
caller: it never repeats a header of a caller that was not verified.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Protocol

import msgspec

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
"""The extra attribute that tells one token or certificate of a user from the next."""
MASTERS = "system:masters"


class IdentityError(Exception):
    """Base of all refusals; `code` is the HTTP status."""

    code: ClassVar[int]

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadPathError(IdentityError):
    """The path is none that a URL may have, so nobody's right to it can be told."""

    code = 400


class UnauthenticatedError(IdentityError):
    """Nobody is known to ask: there is no identity, or none that could be verified."""

    code = 401


class AccessForbiddenError(IdentityError):
    """The peer is known, and may not have what it asks for."""

    code = 403


class DeniedError(AccessForbiddenError):
    """An access review said no. The message is the whole one, in Kubernetes' own words."""


class CrowdedError(IdentityError):
    """Too many direct callers wait for reviews at this moment."""

    code = 429


class UnreviewedError(IdentityError):
    """The API server could not be asked about a token or a right; without its word nobody is let in."""

    code = 503


class IdentitySettingsError(Exception):
    """A certificate, key or setting of identity cannot be used; the message says which and what to do."""


class Via(StrEnum):
    """How a caller was recognised."""

    FRONT_PROXY = "front-proxy"
    CLIENT_CERTIFICATE = "client-certificate"
    TOKEN = "token"  # noqa: S105 - the name of a way, not a token
    NOBODY = "nobody"
    """It was not: what is asked for is free for all."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a TLS connection."""

    chain: tuple[bytes, ...] = ()
    """Verified certificate chain in DER, from the leaf up to and with the root; empty when none was verified.

    A chain that TLS did not verify (as after a resumed session) must not be put here.
    """


class RequestedAccess(Protocol):
    """What identity needs to know of a request. Everything is as it came over the wire."""

    @property
    def method(self) -> str:
        """The verb of HTTP."""
        ...

    @property
    def path(self) -> str:
        """Still percent-encoded."""
        ...

    @property
    def query(self) -> str:
        """Still percent-encoded, without the question mark."""
        ...

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Name and value of each header line, in order."""
        ...

    @property
    def peer_chain(self) -> tuple[bytes, ...]:
        """As `Peer.chain`."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """A user as Kubernetes knows one."""

    name: str
    groups: tuple[str, ...]
    via: Via
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)
    key: bytes = field(init=False, repr=False, compare=False)
    """The same for two callers exactly if access reviews cannot tell them apart; short, whatever groups there are.

    Through the front proxy it is the same for all credentials of a user: kube-apiserver has authorised the request with
    the very one, and the HPA controller's token is another every hour. Were each new to us, 10,000 autoscalers would be
    reviewed anew within one turn.
    """

    def __post_init__(self) -> None:
        """Digest what a review is about."""
        extra = sorted(self.extra.items())
        if self.via is Via.FRONT_PROXY:
            extra = [(name, values) for name, values in extra if name != CREDENTIAL_ID]
        about = msgspec.json.encode((self.name, self.uid, self.groups, extra))
        object.__setattr__(self, "key", hashlib.sha256(about).digest())


NOBODY = Caller(ANONYMOUS, (UNAUTHENTICATED,), Via.NOBODY)


def with_authenticated(user: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Return the groups of a verified user: `system:authenticated` is among them, but for the anonymous user."""
    if user == ANONYMOUS or AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return groups
    return (*groups, AUTHENTICATED)
