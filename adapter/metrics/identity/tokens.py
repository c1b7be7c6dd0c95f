"""Authenticates direct callers by bearer tokens, which the API server reviews (`TokenReview`).

Results are cached for ten seconds under a keyed hash of the token, so a revoked token works for that long, as with
every server that delegates authentication to Kubernetes. The tokens themselves are not stored.
"""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.time.rate_limit import RateLimit
from adapter.foundation.time.single_flight import SingleFlight
from adapter.foundation.time.thread_limit import ThreadLimit
from adapter.metrics.identity.callers import Caller, UnauthenticatedError, UnreviewedError, Via, with_authenticated
from adapter.metrics.identity.reviews import OF_TOKENS, SYSTEM, ReviewEffects, Reviews, Sends, Unreviewed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.time.thread_limit import ThreadLimit
    from adapter.metrics.identity.identity_telemetry import IdentityTelemetry

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
KIND = "TokenReview"

LONGEST_NEGATIVE_SECONDS = 10.0
"""Longest time a rejection is cached; never longer than an acceptance."""
MOST_TOKENS = 10_000
LONGEST_TOKEN = 32 * 1024
REVIEWS_PER_SECOND, REVIEWS_BURST = 50.0, 100
"""Limits on reviews: anyone can make up tokens, and each costs the API server a review."""

_REFUSED = "the bearer token is not accepted: it is expired, revoked, or for another audience"


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class _Status(msgspec.Struct):
    authenticated: bool = False
    user: _User = msgspec.field(default_factory=_User)
    audiences: tuple[str, ...] | None = None


class _Review(msgspec.Struct):
    kind: str
    status: _Status


_REVIEW = decoder_of(_Review)


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """How tokens are reviewed."""

    audiences: tuple[str, ...] = ()
    """A token must be for one of these audiences; if empty, for one of the API server's own."""
    cache_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class _Known:
    """The cached result for one token."""

    caller: Caller | None
    """The caller; None if the API server rejected the token."""
    until: float


@dataclass(slots=True)
class _Memory:
    """Cache of the results by keyed hashes of the tokens, at most MOST_TOKENS of each kind.

    Each new result drops up to two of each kind that have expired: a user may be in a thousand groups. The kinds are
    apart because results of one kind live equally long, so that the oldest expires first.
    """

    accepted: dict[bytes, _Known] = field(default_factory=dict)
    rejected: dict[bytes, _Known] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fresh(self, key: bytes, now: float) -> _Known | None:
        """Return the result for a token that has not expired; None if there is none."""
        both = (self.accepted.get(key), self.rejected.get(key))
        return next((known for known in both if known is not None and now < known.until), None)

    def keep(self, key: bytes, known: _Known, now: float) -> None:
        with self.lock:
            for by_hash in (self.accepted, self.rejected):
                by_hash.pop(key, None)
                for oldest in tuple(islice(by_hash, 2)):
                    if now >= by_hash[oldest].until:
                        del by_hash[oldest]
            alike = self.accepted if known.caller else self.rejected
            if len(alike) >= MOST_TOKENS:
                del alike[next(iter(alike))]
            alike[key] = known


class Tokens:
    """Authenticates callers by bearer tokens. Safe to use from many threads."""

    def __init__(
        self,
        client: Sends,
        telemetry: IdentityTelemetry,
        crowd: ThreadLimit,
        settings: TokenSettings = TokenSettings(),
        means: ReviewEffects = SYSTEM,
    ) -> None:
        self._telemetry = telemetry
        self._crowd = crowd
        self._settings = settings
        self._means = means
        self._reviews = Reviews(
            client,
            PATH,
            decode_status,
            OF_TOKENS,
            count_failure=lambda: telemetry.count_authentication_review("error"),
            means=means,
        )
        self._limits = (RateLimit(REVIEWS_PER_SECOND, REVIEWS_BURST, clock=means.clock, sleep=means.sleep),)
        self._flights: SingleFlight[_Known | Unreviewed] = SingleFlight()
        self._memory = _Memory()
        self._secret = os.urandom(32)

    def identify(self, headers: Sequence[tuple[str, str]]) -> Caller | None:
        """Return the caller whose token the request carries; None if it carries none.

        Raises UnauthenticatedError, CrowdedError, or UnreviewedError if the API server cannot be asked.
        """
        token = bearer_token(headers)
        if token is None:
            return None
        key = hashlib.blake2b(token, key=self._secret, digest_size=32).digest()
        known: _Known | Unreviewed | None = self._memory.fresh(key, self._means.clock())
        if known is None:
            with self._crowd.entered():
                known = self._flights.join(key, lambda: self._review_token(key, token), self._reviews.patience_seconds)
        if not isinstance(known, _Known):
            raise UnreviewedError("the API server could not review the bearer token: try again later")
        if known.caller is None:
            raise UnauthenticatedError(_REFUSED)
        return known.caller

    def _review_token(self, key: bytes, token: bytes) -> _Known | Unreviewed:
        """Ask the API server and cache its answer."""
        known = self._memory.fresh(key, self._means.clock())
        if known is not None:
            return known
        spec: dict[str, object] = {"token": token.decode()}
        if self._settings.audiences:
            spec["audiences"] = list(self._settings.audiences)
        document = {"apiVersion": "authentication.k8s.io/v1", "kind": KIND, "spec": spec}
        status = self._reviews.ask(document, self._limits)
        if isinstance(status, Unreviewed):
            return status
        caller = caller_of(status, self._settings.audiences)
        self._telemetry.count_authentication_review("authenticated" if caller else "unauthenticated")
        seconds = self._settings.cache_seconds
        life = seconds if caller else min(seconds, LONGEST_NEGATIVE_SECONDS)
        now = self._means.clock()
        known = _Known(caller, now + life)
        self._memory.keep(key, known, now)
        return known


def bearer_token(headers: Sequence[tuple[str, str]]) -> bytes | None:
    """Return the token of the Authorization header; None if there is no such header or it has another scheme.

    Raises UnauthenticatedError for more than one header, and for a value that cannot be a token.
    """
    values = [value for name, value in headers if name.lower() == "authorization"]
    if not values:
        return None
    if len(values) > 1:
        raise UnauthenticatedError("there is more than one Authorization header")
    scheme, _, token = values[0].strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        return None
    if len(token) > LONGEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise UnauthenticatedError("the bearer token is malformed")
    return token.encode()


def decode_status(body: bytes) -> _Status:
    """Return the status in an answered review. Raises ValueError, of which msgspec's errors are subclasses."""
    review = _REVIEW.decode(body)
    if review.kind != KIND:
        raise ValueError(f"expected a {KIND}")
    return review.status


def caller_of(status: _Status, audiences: tuple[str, ...]) -> Caller | None:
    """Return the authenticated caller; None if the token was rejected.

    An answer that does not name one of the audiences that were requested comes from a server that knows nothing of
    audiences: its token could be for anybody.
    """
    user = status.user
    if not status.authenticated or not user.username:
        return None
    if audiences and not set(audiences) & set(status.audiences or ()):
        return None
    groups = with_authenticated(user.username, user.groups or ())
    return Caller(user.username, groups, Via.TOKEN, user.uid, user.extra or {})
