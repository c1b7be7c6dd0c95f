"""The values of identity: what TLS has proven about a peer, and who is asking in the end.

Errors carry the HTTP status that Kubernetes' API servers give for them, and a message that is safe to show to the
caller: it never repeats a header of a caller that was not verified.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"


class IdentityError(Exception):
    """Base of all refusals; `code` is the HTTP status."""

    code: ClassVar[int]

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UnauthenticatedError(IdentityError):
    """Nobody is known to ask: there is no identity, or none that could be verified."""

    code = 401


class ForbiddenError(IdentityError):
    """The peer is known, and may not have what it asks for."""

    code = 403


class IdentitySettingsError(Exception):
    """A certificate, key or setting of identity cannot be used; the message says which and what to do."""


class Via(StrEnum):
    """How a caller was recognised."""

    FRONT_PROXY = "front-proxy"


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a TLS connection."""

    chain: tuple[bytes, ...] = ()
    """Verified certificate chain in DER, from the leaf up to and with the root; empty when none was verified.

    A chain that TLS did not verify (as after a resumed session) must not be put here.
    """


@dataclass(frozen=True, slots=True)
class Caller:
    """A user as Kubernetes knows one."""

    name: str
    groups: tuple[str, ...]
    via: Via
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)
