"""Authorizes callers by access reviews, whose decisions are cached.

kube-apiserver authorizes a request before it passes it on, for the same user, verb and resource. For its callers the
review is therefore a second check, and an allowed one is cached for longer (`--front-proxy-authorized-ttl`, 5 minutes).
With 10,000 autoscalers that read a metric each, this costs the API server 34 reviews a second; if decisions were cached
for ten seconds, each request would need a review. The number of callers has three consequences:

- Their first reviews come at the same time, and would be repeated at the same time. So the first decision for each is
  cached for a random part of the five minutes, and only later ones for all of it.
- The first request after a decision has expired starts a renewal in the background, and waits for it only if another
  tenth of the time has passed. If requests always waited, a slow API server would occupy all request threads.
- While reviews fail or take too long, an expired decision still admits front-proxy callers, for at most the same time
  again. This is safe because an API server has just authorized the request. A denial takes effect at once.

For direct callers the review is the only check: a request that cannot be reviewed is never allowed.
"""

from __future__ import annotations

import logging
import math
import threading
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.time.single_flight import SingleFlight
from adapter.metrics.identity.access_reviews import ReviewDecision
from adapter.metrics.identity.callers import (
    MASTERS,
    AccessForbiddenError,
    Caller,
    CrowdedError,
    DeniedError,
    UnreviewedError,
    Via,
)
from adapter.metrics.identity.reviews import OF_RIGHTS, SYSTEM, ReviewEffects, Unreviewed, review_waiters

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.time.thread_limit import ThreadLimit
    from adapter.metrics.identity.attributes import Attributes
    from adapter.metrics.identity.identity_telemetry import IdentityTelemetry

MOST_ANSWERS = 100_000
"""Limit on the cached decisions for front-proxy callers, and on those for direct ones."""
MOST_CHARACTERS = 32 << 20
"""Limit on the characters of the names in each of the two caches: anyone with a token can request long, made-up
names."""
GRACE_SHARE = 0.1
"""The share of its lifetime in which an expired decision is renewed in the background: 30 seconds of five minutes, two
sync periods of an autoscaler."""
MOST_RENEWING = 4
"""Limit on the requests that wait for a renewal at the same time although an expired decision could be used."""
TRY_AGAIN_SECONDS = 3.0
"""Pause between two renewals in the background."""
JOIN_SECONDS = OF_RIGHTS.seconds + 1.0
"""Longest wait for a review that another request has started: slightly longer than a review takes."""
REPAIR = "bind its service account to the cluster role system:auth-delegator"
_ALLOWED_WITHOUT_REVIEW = ReviewDecision(allowed=True)

_log = logging.getLogger(__name__)

Key: TypeAlias = "tuple[bytes, Attributes]"


@dataclass(frozen=True, slots=True)
class AuthorizationSettings:
    """How long decisions are cached, in seconds."""

    authorized_seconds: float = 10.0
    """How long the permission of a direct caller is cached."""
    unauthorized_seconds: float = 10.0
    """How long a denial is cached, for any caller."""
    front_proxy_seconds: float = 300.0
    """How long the permission of a caller through the front proxy is cached."""
    required: bool = True
    """Whether to refuse front-proxy callers too while this process is not allowed to create reviews."""


@dataclass(slots=True)
class _Answer:
    """A cached decision and when it expires, in monotonic seconds."""

    decision: ReviewDecision
    fresh_until: float
    renew_at: float = math.inf
    """When the next request starts a renewal in the background; postponed while one is under way."""
    usable_until: float = 0.0
    """When it expires while reviews fail."""

    def is_over(self, now: float) -> bool:
        """Return whether it can no longer be used, even while reviews fail."""
        return now >= max(self.fresh_until, self.usable_until)


class _Memory:
    """Bounded cache of answers by key. Each new answer drops up to two of the oldest that have expired.

    If there is still no room for it, it drops the oldest, expired or not.
    """

    def __init__(self) -> None:
        self.answers: dict[Key, _Answer] = {}
        self._characters = 0
        self._lock = threading.Lock()

    def keep(self, key: Key, answer: _Answer, now: float) -> None:
        with self._lock:
            if key in self.answers:
                self._forget(key)
            # Two for each that is added: thousands at once, as after a quiet night, would hold up other requests.
            for oldest in tuple(islice(self.answers, 2)):
                if self.answers[oldest].is_over(now):
                    self._forget(oldest)
            self._characters += key[1].characters
            while self.answers and (len(self.answers) >= MOST_ANSWERS or self._characters > MOST_CHARACTERS):
                self._forget(next(iter(self.answers)))
            self.answers[key] = answer

    def _forget(self, key: Key) -> None:
        del self.answers[key]
        self._characters -= key[1].characters


class Authorizer:
    """Authorizes callers. Safe to use from many threads.

    `review` asks the API server; `submit` runs a function soon in another thread.
    """

    def __init__(
        self,
        review: Callable[[Caller, Attributes], ReviewDecision | Unreviewed],
        submit: Callable[[Callable[[], None]], None],
        crowd: ThreadLimit,
        telemetry: IdentityTelemetry,
        settings: AuthorizationSettings = AuthorizationSettings(),
        means: ReviewEffects = SYSTEM,
    ) -> None:
        self._review = review
        self._submit = submit
        self._crowd = crowd
        self._renewing = review_waiters(MOST_RENEWING)
        self._telemetry = telemetry
        self._settings = settings
        self._means = means
        self._flights: SingleFlight[_Answer | Unreviewed] = SingleFlight()
        self._front_proxy = _Memory()
        self._direct = _Memory()
        self._lacks_right = False

    def require(self, caller: Caller, attributes: Attributes) -> None:
        """Raise DeniedError unless the caller may do this; UnreviewedError or CrowdedError if that is unknown."""
        if MASTERS in caller.groups:
            return
        memory = self._front_proxy if caller.via is Via.FRONT_PROXY else self._direct
        key = caller.key, attributes
        answer = memory.answers.get(key)
        now = self._means.clock()
        if answer is None or now >= answer.fresh_until:
            decision = self._decide(memory, key, caller, attributes)
        else:
            decision = answer.decision
            if now >= answer.renew_at:
                answer.renew_at = now + TRY_AGAIN_SECONDS
                # If no thread can be started, the answer is still good, and a later request tries again.
                with suppress(RuntimeError):
                    self._submit(lambda: self._renew(answer, key, caller, attributes))
        if not decision.allowed:
            refusal = attributes.refusal(caller.name)
            raise DeniedError(f"{refusal}: {decision.reason}" if decision.reason else refusal)

    def _decide(self, memory: _Memory, key: Key, caller: Caller, attributes: Attributes) -> ReviewDecision:
        """Return the API server's decision, or its substitute."""
        if memory is self._front_proxy:
            return self._asked_for_front_proxy(key, caller, attributes)
        with self._crowd.entered():
            answer = self._shared_answer(memory, key, caller, attributes)
        if isinstance(answer, _Answer):
            return answer.decision
        if answer.lacks_right:
            raise AccessForbiddenError("this server cannot create access reviews, so it serves no direct callers")
        raise _cannot_ask()

    def _asked_for_front_proxy(self, key: Key, caller: Caller, attributes: Attributes) -> ReviewDecision:
        last = self._front_proxy.answers.get(key)
        usable = last if last is not None and self._means.clock() < last.usable_until else None
        try:
            with self._renewing.entered() if usable else nullcontext():
                answer = self._shared_answer(self._front_proxy, key, caller, attributes)
        except CrowdedError:
            answer = Unreviewed("others wait for renewals already")
        if isinstance(answer, _Answer):
            return answer.decision
        if answer.lacks_right and not self._settings.required:
            return _ALLOWED_WITHOUT_REVIEW
        if usable is None:
            raise _cannot_ask()
        self._telemetry.count_stale_answer()
        return usable.decision

    def _shared_answer(self, memory: _Memory, key: Key, caller: Caller, attributes: Attributes) -> _Answer | Unreviewed:
        """Return the answer of one review to all requests that need the same one at this moment."""

        def review() -> _Answer | Unreviewed:
            known = memory.answers.get(key)
            if known is not None and self._means.clock() < known.fresh_until:
                return known
            return self._review_now(memory, key, caller, attributes)

        answer = self._flights.join((caller.via, key), review, JOIN_SECONDS)
        return answer or Unreviewed("another request's review did not end in time")

    def _review_now(self, memory: _Memory, key: Key, caller: Caller, attributes: Attributes) -> _Answer | Unreviewed:
        """Ask the API server and cache its decision."""
        found = self._review(caller, attributes)
        if isinstance(found, Unreviewed):
            if found.lacks_right:
                self._note_right(lacks=True)
            return found
        self._note_right(lacks=False)
        answer = self._answer(found, memory, first=key not in memory.answers)
        memory.keep(key, answer, self._means.clock())
        return answer

    def _answer(self, decision: ReviewDecision, memory: _Memory, *, first: bool) -> _Answer:
        now = self._means.clock()
        settings = self._settings
        if not decision.allowed:
            return _Answer(decision, now + settings.unauthorized_seconds)
        if memory is self._direct:
            return _Answer(decision, now + settings.authorized_seconds)
        life = settings.front_proxy_seconds
        ends = now + (self._means.uniform(0.0, life) if first else life)
        return _Answer(decision, ends + life * GRACE_SHARE, renew_at=ends, usable_until=ends + life)

    def _renew(self, expired: _Answer, key: Key, caller: Caller, attributes: Attributes) -> None:
        """Renew the decision unless another request has renewed it."""
        memory = self._front_proxy
        if memory.answers.get(key) is expired:
            self._flights.join(
                (caller.via, key), lambda: self._review_now(memory, key, caller, attributes), JOIN_SECONDS
            )

    def _note_right(self, *, lacks: bool) -> None:
        """Log when this process loses the permission to create reviews, and when it has it again."""
        if lacks == self._lacks_right:
            return
        self._lacks_right = lacks
        if not lacks:
            _log.info("access reviews are made: direct callers are served too")
        elif self._settings.required:
            _log.error("this server is not allowed to create access reviews, so all requests are refused: %s", REPAIR)
        else:
            _log.warning(
                "this server is not allowed to create access reviews: only requests through the verified front proxy "
                "are served, because kube-apiserver has authorized them: %s",
                REPAIR,
            )


def _cannot_ask() -> UnreviewedError:
    return UnreviewedError("the API server could not be asked whether this is allowed: try again later")
