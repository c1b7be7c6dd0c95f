"""An authorizer whose clock and API server are controlled by tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from adapter.foundation.sources.kubernetes.errors import KubernetesError, UnreachableError
from adapter.metrics.identity.access_reviews import AccessReviews
from adapter.metrics.identity.attributes import Attributes, attributes_of
from adapter.metrics.identity.authorization import AuthorizationSettings, Authorizer
from adapter.metrics.identity.callers import Caller, DeniedError, Via
from adapter.metrics.identity.reviews import ReviewEffects, review_waiters
from tests.adapter.metrics.identity.reviewing import Counted, ScriptedApiServer, Time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


Reply: TypeAlias = "Mapping[str, Any] | bytes | KubernetesError"
YES: dict[str, Any] = {"status": {"allowed": True}}
NO: dict[str, Any] = {"status": {"allowed": False}}
GONE = UnreachableError("gone")
PODS = attributes_of("GET", "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/%2A/M")
HPA = Caller("hpa", ("system:authenticated",), Via.FRONT_PROXY)
DIRECT = Caller("bob", ("system:authenticated",), Via.TOKEN)


class Harness:
    """An authorizer; the renewals that it schedules wait in `scheduled`."""

    def __init__(self, settings: AuthorizationSettings | None = None, most: int = 8) -> None:
        self.time = Time()
        self.counted = Counted()
        self.reply: Reply = YES
        self.scheduled: list[Callable[[], None]] = []
        self.can_start_threads = True
        self.server = ScriptedApiServer(lambda _: self.reply)
        self.rebuild(settings or AuthorizationSettings(), self.time.effects, most)

    def rebuild(self, settings: AuthorizationSettings, effects: ReviewEffects, most: int = 8) -> None:
        reviews = AccessReviews(self.server, self.counted.telemetry, effects)
        self.authorizer = Authorizer(
            reviews.review, self._schedule, review_waiters(most), self.counted.telemetry, settings, effects
        )

    @property
    def reviews_sent(self) -> int:
        return len(self.server.requests)

    def allows(self, caller: Caller = HPA, attributes: Attributes = PODS) -> bool:
        try:
            self.authorizer.require(caller, attributes)
        except DeniedError:
            return False
        return True

    def _schedule(self, work: Callable[[], None]) -> None:
        if not self.can_start_threads:
            raise RuntimeError("can't start new thread")
        self.scheduled.append(work)

    def run_scheduled(self) -> None:
        while self.scheduled:
            self.scheduled.pop()()
