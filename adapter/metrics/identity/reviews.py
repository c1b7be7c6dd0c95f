"""Sends reviews of tokens and of accesses to kube-apiserver.

Reviews of one kind go through one `Reviews`, which keeps what both need: a rate limit, a deadline over all tries, and a
pause after a failure. A server that hangs blocks every thread that asks it until the deadline. During the pause,
threads get the result `Unreviewed` at once; after the pause, one thread sends a review on behalf of all.

An unknown result is a value (`Unreviewed`) and not an exception, because many threads share one answer.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from adapter.foundation.sources.kubernetes.errors import (
    AdmissionError,
    ForbiddenError,
    KubernetesError,
    ServerError,
    StatusError,
    ThrottledError,
    UnauthorizedError,
    UnexpectedResponseError,
    UnreachableError,
)
from adapter.foundation.time.backoff import backoff_seconds
from adapter.foundation.time.thread_limit import ThreadLimit
from adapter.metrics.identity.callers import CrowdedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from adapter.foundation.time.rate_limit import RateLimit

T = TypeVar("T")

PAUSE_SECONDS = 1.0
"""The pause after a failure, in seconds."""
PAUSE_WITHOUT_RIGHT_SECONDS = 30.0
"""Longest pause while the API server forbids this process to create reviews. The first pause is `PAUSE_SECONDS` long,
and each further one is twice the previous one: a starting API server forbids everything until it has read its roles."""
_LEAST_SECONDS = 0.05

_log = logging.getLogger(__name__)


class Sends(Protocol):
    """The part of `KubernetesClient` that reviews need."""

    def send(self, method: str, path: str, body: Mapping[str, object], *, seconds: float) -> bytes:
        """Send a document and return the answer; raises KubernetesError."""


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """Limits on how long a review is tried."""

    seconds: float
    """Total time, including the wait for the rate limit."""
    first_wait_seconds: float
    """Wait after the first try; each further wait is 1.5 times as long, with up to 20% of jitter."""
    tries: int = 5


OF_TOKENS = RetryLimits(10.0, 0.5)
OF_RIGHTS = RetryLimits(2.0, 0.1)


@dataclass(frozen=True, slots=True)
class Unreviewed:
    """The API server did not answer; `cause` is for the log, not for callers."""

    cause: str
    lacks_right: bool = False
    """Whether the cause is that this process is not allowed to create reviews of this kind."""


@dataclass(frozen=True, slots=True)
class ReviewEffects:
    """The clocks and the randomness that reviews use."""

    clock: Callable[[], float] = time.monotonic
    """Returns monotonic seconds."""
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform


SYSTEM = ReviewEffects()
"""The effects of the operating system."""


@dataclass(frozen=True, slots=True)
class _Pause:
    until: float
    because: Unreviewed
    refusals: int
    """Consecutive pauses, including this one, for lack of permission."""


def review_waiters(most: int) -> ThreadLimit:
    """Return the limit on threads that wait for the API server on behalf of direct callers.

    Anybody who reaches the port can make up tokens. While the API server is slow, each would occupy a thread, and none
    would be free for the autoscaler. A thread beyond the limit gets CrowdedError.
    """
    return ThreadLimit(most, lambda: CrowdedError("too many direct callers are waiting for reviews: try again later"))


class Reviews(Generic[T]):
    """Creates reviews of one kind. Safe to use from many threads.

    `decode` decodes an answer, and raises ValueError for an answer that is not a review.
    `count_failure` is called at each failure.
    """

    def __init__(
        self,
        client: Sends,
        path: str,
        decode: Callable[[bytes], T],
        patience: RetryLimits,
        *,
        count_failure: Callable[[], None],
        means: ReviewEffects = SYSTEM,
    ) -> None:
        self._client = client
        self._path = path
        self._decode = decode
        self._patience = patience
        self._count_failure = count_failure
        self._means = means
        self._pause: _Pause | None = None
        self._probing = threading.Lock()
        self._said = ""

    @property
    def patience_seconds(self) -> float:
        """Longest duration of a review, retries included."""
        return self._patience.seconds

    def ask(self, document: Mapping[str, object], limits: Sequence[RateLimit]) -> T | Unreviewed:
        """Return the server's answer, after waiting for all the limits."""
        pause = self._pause
        if pause is None:
            return self._request_review(document, limits)
        if self._means.clock() < pause.until or not self._probing.acquire(blocking=False):
            return pause.because
        try:
            return self._request_review(document, limits)
        finally:
            self._probing.release()

    def _request_review(self, document: Mapping[str, object], limits: Sequence[RateLimit]) -> T | Unreviewed:
        end = self._means.clock() + self._patience.seconds
        for limit in limits:
            if not limit.take(end - self._means.clock()):
                self._count_failure()
                return Unreviewed("more reviews were requested than the rate limit allows")
        try:
            answer = self._answer(document, end)
        except KubernetesError as error:
            self._count_failure()
            return self._failed_review(error)
        if self._pause is not None:
            self._pause, self._said = None, ""
            _log.info("reviews are answered again", extra={"fields": {"path": self._path}})
        return answer

    def _answer(self, document: Mapping[str, object], end: float) -> T:
        """Return the first answer; raises the KubernetesError of the last try if there is none."""
        wait = self._patience.first_wait_seconds
        for tries_left in range(self._patience.tries - 1, -1, -1):
            try:
                left = max(_LEAST_SECONDS, end - self._means.clock())
                return self._decode_review(self._client.send("POST", self._path, document, seconds=left))
            except (UnreachableError, ServerError, ThrottledError) as error:
                delay = wait * self._means.uniform(1.0, 1.2)
                if isinstance(error, ThrottledError):
                    delay = max(delay, error.retry_after_seconds)
                if not tries_left or self._means.clock() + delay >= end:
                    raise
            self._means.sleep(delay)
            wait *= 1.5
        raise AssertionError("the last try returns or raises")

    def _decode_review(self, body: bytes) -> T:
        try:
            return self._decode(body)
        except ValueError as error:
            # The message is not quoted: it may repeat the document, which contains a token.
            raise UnexpectedResponseError(f"POST {self._path}: not a review ({type(error).__name__})") from None

    def _failed_review(self, error: KubernetesError) -> Unreviewed:
        lacks_right = isinstance(error, ForbiddenError)
        found = Unreviewed(_failure_text(self._path, error), lacks_right)
        if not _is_of_this_review(error):
            self._pause = self._next_pause(found)
        if found.cause != self._said:
            self._said = found.cause
            _log.warning("reviews are not answered", extra={"fields": {"cause": found.cause}})
        return found

    def _next_pause(self, because: Unreviewed) -> _Pause:
        """Return the pause after a failure; of simultaneous failures only the first counts."""
        last, now = self._pause, self._means.clock()
        if last is not None and now < last.until:
            return last
        if not because.lacks_right:
            return _Pause(now + PAUSE_SECONDS, because, 0)
        refusals = 1 + (last.refusals if last else 0)
        seconds = backoff_seconds(refusals, first_seconds=PAUSE_SECONDS, longest_seconds=PAUSE_WITHOUT_RIGHT_SECONDS)
        return _Pause(now + seconds, because, refusals)


def _is_of_this_review(error: KubernetesError) -> bool:
    """Return whether the error concerns only this review's document, so that other reviews may still succeed."""
    others = (AdmissionError, ForbiddenError, UnauthorizedError, ThrottledError, ServerError)
    return isinstance(error, StatusError) and not isinstance(error, others)


def _failure_text(path: str, error: KubernetesError) -> str:
    """Return the failure without the server's own text, since the server or a proxy may repeat what it was sent."""
    if isinstance(error, ForbiddenError):
        return f"POST {path}: 403: bind the service account to the cluster role system:auth-delegator"
    if isinstance(error, StatusError):
        return f"POST {path}: {error.code}"
    if isinstance(error, UnreachableError):
        return f"POST {path}: the API server was not reached, or did not answer in time"
    return f"POST {path}: {type(error).__name__}"
