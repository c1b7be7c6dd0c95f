"""Who may do what: answers of access reviews, remembered for as long as they are good for.

kube-apiserver authorises a request before it passes it on, for the very user, verb and resource that the request names
here. For its callers the review is therefore a second lock, and what it allows holds for longer
(`--front-proxy-authorized-ttl`, 5 minutes): 10,000 autoscalers that ask for a metric each cost the API server 34
reviews a second, where ten seconds would make it one for every request. Three things follow from their number:

- They begin at the same time, and would come again at the same time. So the first answer of each holds for a random
  part of the five minutes, and only those that follow for all of it.
- Whoever asks next after an answer has expired has it renewed in the background, and does not wait for that unless a
  tenth of the time has passed too. Were requests to wait, a slow API server would take all threads that answer them.
- While reviews fail, or take too long, an answer that has expired goes on letting front-proxy callers in for as long
  again, at most. It only ever was the second lock: that the request came shows that an API server has authorised it
  just now. What a review denies is denied at once.

For direct callers the review is the only lock: what cannot be reviewed is not allowed, not for a moment.
"""

from __future__ import annotations

import logging
import math
import threading
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from adapter.identity.access_reviews import ReviewDecision
from adapter.identity.callers import (
    MASTERS,
    AccessForbiddenError,
    Caller,
    CrowdedError,
    DeniedError,
    UnreviewedError,
    Via,
)
from adapter.identity.reviews import OF_RIGHTS, SYSTEM, ReviewEffects, Unreviewed, review_waiters
from adapter.timing.single_flight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.identity.attributes import Attributes
    from adapter.identity.telemetry import IdentityTelemetry
    from adapter.timing.waiter_limit import WaiterLimit

MOST_ANSWERS = 100_000
"""That are remembered of front-proxy callers, and as many of direct ones."""
MOST_CHARACTERS = 32 << 20
"""In the names that they are about, of each of the two: whoever has a token can ask for long names that nobody has."""
GRACE_SHARE = 0.1
"""Of an answer's time, in which it is renewed beside the requests after it has expired: 30 seconds of five minutes, two
turns of an autoscaler."""
MOST_RENEWING = 4
"""Requests that may wait for a renewal at once, where an expired answer could be used instead."""
TRY_AGAIN_SECONDS = 3.0
"""After a renewal in the background was asked for."""
JOIN_SECONDS = OF_RIGHTS.seconds + 1.0
"""To wait for a review that somebody else has asked for: a little longer than one takes."""
REPAIR = "bind its service account to the cluster role system:auth-delegator"
_ALLOWED_WITHOUT_REVIEW = ReviewDecision(allowed=True)

_log = logging.getLogger(__name__)

Key: TypeAlias = "tuple[bytes, Attributes]"


@dataclass(frozen=True, slots=True)
class AuthorizationSettings:
    """How long answers hold, in seconds."""

    authorized_seconds: float = 10.0
    """Allowed, for direct callers."""
    unauthorized_seconds: float = 10.0
    """Denied, for everybody."""
    front_proxy_seconds: float = 300.0
    """Allowed, for callers through the front proxy."""
    required: bool = True
    """Whether nobody is served while this process may not ask for reviews; else front-proxy callers are."""


@dataclass(slots=True)
class _Answer:
    """What a review said, and for how long that is good, by the monotonic clock."""

    decision: ReviewDecision
    fresh_until: float
    renew_at: float = math.inf
    """From when on a request has it renewed in the background; moved on when that is under way."""
    usable_until: float = 0.0
    """Where reviews fail."""


class _Memory:
    """Answers by key, the oldest forgotten first."""

    def __init__(self) -> None:
        self.answers: dict[Key, _Answer] = {}
        self._characters = 0
        self._lock = threading.Lock()

    def keep(self, key: Key, answer: _Answer) -> None:
        with self._lock:
            if key in self.answers:
                self._forget(key)
            self._characters += key[1].characters
            while self.answers and (len(self.answers) >= MOST_ANSWERS or self._characters > MOST_CHARACTERS):
                self._forget(next(iter(self.answers)))
            self.answers[key] = answer

    def _forget(self, key: Key) -> None:
        del self.answers[key]
        self._characters -= key[1].characters


class Authorizer:
    """Says whether callers may. Safe to use from many threads.

    `review` asks the API server; `submit` runs something soon, in another thread.
    """

    def __init__(
        self,
        review: Callable[[Caller, Attributes], ReviewDecision | Unreviewed],
        submit: Callable[[Callable[[], None]], None],
        crowd: WaiterLimit,
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
        """Return if the caller may; raises DeniedError if not, UnreviewedError or CrowdedError if nobody can tell."""
        if MASTERS in caller.groups:
            return
        memory = self._front_proxy if caller.via is Via.FRONT_PROXY else self._direct
        key = caller.key, attributes
        answer = memory.answers.get(key)
        now = self._means.clock()
        if answer is None or now >= answer.fresh_until:
            decision = self._asked(memory, key, caller, attributes)
        else:
            decision = answer.decision
            if now >= answer.renew_at:
                answer.renew_at = now + TRY_AGAIN_SECONDS
                self._submit(lambda: self._renew(answer, key, caller, attributes))
        if not decision.allowed:
            refusal = attributes.refusal(caller.name)
            raise DeniedError(f"{refusal}: {decision.reason}" if decision.reason else refusal)

    def _asked(self, memory: _Memory, key: Key, caller: Caller, attributes: Attributes) -> ReviewDecision:
        """Return what the API server says, or what stands in for it."""
        if memory is self._front_proxy:
            return self._asked_for_front_proxy(key, caller, attributes)
        with self._crowd.joined():
            answer = self._shared(memory, key, caller, attributes)
        if isinstance(answer, _Answer):
            return answer.decision
        if answer.lacks_right:
            raise AccessForbiddenError("this server may not ask for access reviews, so it serves no direct callers")
        raise _cannot_ask()

    def _asked_for_front_proxy(self, key: Key, caller: Caller, attributes: Attributes) -> ReviewDecision:
        last = self._front_proxy.answers.get(key)
        usable = last if last is not None and self._means.clock() < last.usable_until else None
        try:
            with self._renewing.joined() if usable else nullcontext():
                answer = self._shared(self._front_proxy, key, caller, attributes)
        except CrowdedError:
            answer = Unreviewed("others wait for renewals already")
        if isinstance(answer, _Answer):
            return answer.decision
        if answer.lacks_right and not self._settings.required:
            return _ALLOWED_WITHOUT_REVIEW
        if usable is None:
            raise _cannot_ask()
        self._telemetry.stale_answer()
        return usable.decision

    def _shared(self, memory: _Memory, key: Key, caller: Caller, attributes: Attributes) -> _Answer | Unreviewed:
        """Return what one review says to all that ask the same at this moment."""

        def review() -> _Answer | Unreviewed:
            known = memory.answers.get(key)
            if known is not None and self._means.clock() < known.fresh_until:
                return known
            return self._reviewed(memory, key, caller, attributes)

        answer = self._flights.join((caller.via, key), review, JOIN_SECONDS)
        return answer or Unreviewed("another request's review did not end in time")

    def _reviewed(self, memory: _Memory, key: Key, caller: Caller, attributes: Attributes) -> _Answer | Unreviewed:
        """Ask the API server and remember what it says."""
        found = self._review(caller, attributes)
        if isinstance(found, Unreviewed):
            if found.lacks_right:
                self._note_right(lacks=True)
            return found
        self._note_right(lacks=False)
        answer = self._answer(found, memory, first=key not in memory.answers)
        memory.keep(key, answer)
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
        """Ask anew, unless somebody has."""
        memory = self._front_proxy
        if memory.answers.get(key) is expired:
            self._flights.join((caller.via, key), lambda: self._reviewed(memory, key, caller, attributes), JOIN_SECONDS)

    def _note_right(self, *, lacks: bool) -> None:
        """Say when this process may not ask for reviews, and when it may again."""
        if lacks == self._lacks_right:
            return
        self._lacks_right = lacks
        if not lacks:
            _log.info("access reviews are made: direct callers are served too")
        elif self._settings.required:
            _log.error("this server may not ask for access reviews: nobody is served: %s", REPAIR)
        else:
            _log.warning(
                "this server may not ask for access reviews: only requests through the verified front proxy are "
                "served, as kube-apiserver has authorised them: %s",
                REPAIR,
            )


def _cannot_ask() -> UnreviewedError:
    return UnreviewedError("the API server could not be asked whether this is allowed: try again later")
