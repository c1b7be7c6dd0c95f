"""Values of authentication: what TLS has verified about a peer, and the caller that results.

Errors carry the HTTP status that Kubernetes API servers return for them, and a message that is safe to show to the
caller: it never repeats a header of a caller that was not verified.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

import msgspec

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
"""The extra attribute that distinguishes the tokens or certificates of a user."""
MASTERS = "system:masters"


class IdentityError(Exception):
    """Base class of all refusals; `code` is the HTTP status."""

    code: ClassVar[int]

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadPathError(IdentityError):
    """The path is not valid in a URL, so nobody can be authorized for it."""

    code = 400


class UnauthenticatedError(IdentityError):
    """The request carries no credentials, or none that could be verified."""

    code = 401


class AccessForbiddenError(IdentityError):
    """The caller is authenticated, but not allowed to do what it requests."""

    code = 403


class DeniedError(AccessForbiddenError):
    """An access review denied the request. The message is complete, in the words of Kubernetes."""


class CrowdedError(IdentityError):
    """Too many direct callers are waiting for reviews."""

    code = 429


class UnreviewedError(IdentityError):
    """The API server could not review a token or an access; the request is refused, since it needs that review."""

    code = 503


class IdentitySettingsError(Exception):
    """A certificate, key or setting for authentication is unusable; the message says which one and what to do."""


class Via(StrEnum):
    """How a caller was authenticated."""

    FRONT_PROXY = "front-proxy"
    CLIENT_CERTIFICATE = "client-certificate"
    TOKEN = "token"  # noqa: S105 - the name of a way, not a token
    NOBODY = "nobody"
    """The caller was not authenticated: the path is open to everyone."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a TLS connection."""

    chain: tuple[bytes, ...] = ()
    """Verified certificate chain in DER, from the leaf to the root inclusive; empty if none was verified.

    A chain that TLS did not verify (as after a resumed session) must not be put here.
    """


@dataclass(frozen=True, slots=True)
class Caller:
    """A user, with the attributes by which Kubernetes knows users."""

    name: str
    groups: tuple[str, ...]
    via: Via
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)
    key: bytes = field(init=False, repr=False, compare=False)
    """A short digest, equal for two callers exactly if access reviews cannot distinguish them.

    Through the front proxy it is equal for all credentials of a user: kube-apiserver has authorized the request with
    the one that was used, and the HPA controller gets a new token every hour. If each counted as a new caller, 10,000
    autoscalers would be reviewed again within one sync period.
    """

    def __post_init__(self) -> None:
        """Compute the digest of what access reviews know about the caller."""
        extra = sorted(self.extra.items())
        if self.via is Via.FRONT_PROXY:
            extra = [(name, values) for name, values in extra if name != CREDENTIAL_ID]
        about = msgspec.json.encode((self.name, self.uid, self.groups, extra))
        object.__setattr__(self, "key", hashlib.sha256(about).digest())


NOBODY = Caller(ANONYMOUS, (UNAUTHENTICATED,), Via.NOBODY)


def with_authenticated(user: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Return the groups of a verified user with `system:authenticated`, unless the user is anonymous."""
    if user == ANONYMOUS or AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return groups
    return (*groups, AUTHENTICATED)
