"""`SubjectAccessReview`: asks the API server whether a caller is allowed to do what it requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.time.rate_limit import RateLimit
from adapter.metrics.identity.callers import Caller, Via
from adapter.metrics.identity.reviews import OF_RIGHTS, SYSTEM, ReviewEffects, Reviews, Sends, Unreviewed

if TYPE_CHECKING:
    from adapter.metrics.identity.attributes import Attributes
    from adapter.metrics.identity.identity_telemetry import IdentityTelemetry

PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
KIND = "SubjectAccessReview"

REVIEWS_PER_SECOND, REVIEWS_BURST = 200.0, 400
"""The limits of Go's delegating authorizer."""
DIRECT_PER_SECOND, DIRECT_BURST = 50.0, 100
"""Limits for direct callers: one of them must not use up what callers through the front proxy need."""

_LONGEST_REASON = 256


@dataclass(frozen=True, slots=True)
class ReviewDecision:
    """The API server's decision."""

    allowed: bool
    reason: str = ""


class _Status(msgspec.Struct):
    allowed: bool
    denied: bool = False
    reason: str = ""


class _Review(msgspec.Struct):
    kind: str
    status: _Status


_REVIEW = decoder_of(_Review)


class AccessReviews:
    """Asks the API server whether requests are allowed. Safe to use from many threads."""

    def __init__(self, client: Sends, telemetry: IdentityTelemetry, means: ReviewEffects = SYSTEM) -> None:
        self._telemetry = telemetry
        self._reviews = Reviews(
            client,
            PATH,
            decode_decision,
            OF_RIGHTS,
            count_failure=lambda: telemetry.count_authorization_review("error"),
            means=means,
        )
        self._all = RateLimit(REVIEWS_PER_SECOND, REVIEWS_BURST, clock=means.clock, sleep=means.sleep)
        self._of_direct = RateLimit(DIRECT_PER_SECOND, DIRECT_BURST, clock=means.clock, sleep=means.sleep)

    @property
    def patience_seconds(self) -> float:
        """The longest duration of a review, including retries."""
        return self._reviews.patience_seconds

    def review(self, caller: Caller, attributes: Attributes) -> ReviewDecision | Unreviewed:
        """Return whether the caller is allowed to do what the attributes describe."""
        limits = (self._all,) if caller.via is Via.FRONT_PROXY else (self._of_direct, self._all)
        decision = self._reviews.ask(review_document(caller, attributes), limits)
        if isinstance(decision, ReviewDecision):
            self._telemetry.count_authorization_review("allowed" if decision.allowed else "denied")
        return decision


def review_document(caller: Caller, attributes: Attributes) -> dict[str, object]:
    """Return the review to send: the caller, and either the resource or the path; empty fields are omitted."""
    spec: dict[str, object] = {"user": caller.name, "groups": list(caller.groups)}
    if attributes.path:
        spec["nonResourceAttributes"] = {"path": attributes.path, "verb": attributes.verb}
    else:
        named = ("namespace", "verb", "group", "version", "resource", "subresource", "name")
        values = {name: getattr(attributes, name) for name in named}
        spec["resourceAttributes"] = {name: value for name, value in values.items() if value}
    if caller.uid:
        spec["uid"] = caller.uid
    if caller.extra:
        spec["extra"] = {key: list(values) for key, values in caller.extra.items()}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": KIND, "spec": spec}


def decode_decision(body: bytes) -> ReviewDecision:
    """Return the decision in an answered review. Raises ValueError, of which msgspec's errors are subclasses."""
    review = _REVIEW.decode(body)
    if review.kind != KIND:
        raise ValueError(f"expected a {KIND}")
    status = review.status
    return ReviewDecision(status.allowed and not status.denied, status.reason[:_LONGEST_REASON])
