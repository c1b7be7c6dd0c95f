"""The requests of HPAs and of the adapter during a period, from the API server's audit log."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from benchmarks.tally import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tests.e2e.controlplane.audit import AuditEvent

HPA_CONTROLLER: Final = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
CUSTOM_METRICS: Final = "custom.metrics.k8s.io"
REVIEWS: Final = frozenset({"subjectaccessreviews", "tokenreviews"})
_STREAMED: Final = "sendInitialEvents=true"
"""Part of the URI of a watch that begins with all objects (KEP-3157)."""


@dataclass(frozen=True, slots=True)
class AskedByHpas:
    """Requests of the HPA controller for custom metrics."""

    codes: Counter[int]
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None

    @property
    def requests(self) -> int:
        return self.codes.total()

    @property
    def errors(self) -> int:
        """The number of requests with another status than 200."""
        return self.requests - self.codes[200]


@dataclass(frozen=True, slots=True)
class AskedByAdapter:
    """Requests of the adapter's service account, by kind."""

    lists: tuple[str, ...]
    """The collections that were listed as a whole, by LISTs or by the initial events of a watch."""
    watches: tuple[str, ...]
    """The collection of each watch that began."""
    reviews: int
    """The number of SubjectAccessReviews and TokenReviews."""
    others: tuple[str, ...]
    """Verb and path of everything else."""

    @property
    def requests(self) -> int:
        return len(self.lists) + len(self.watches) + self.reviews + len(self.others)


def requests_of_hpas(events: Sequence[AuditEvent], since: datetime, until: datetime) -> list[AuditEvent]:
    """Return the HPA controller's requests for custom metrics that arrived between two moments."""
    return [
        event
        for event in events
        if event.user == HPA_CONTROLLER and event.group == CUSTOM_METRICS and since <= event.start < until
    ]


def asked_by_hpas(events: Sequence[AuditEvent], since: datetime, until: datetime) -> AskedByHpas:
    """Return the HPA controller's requests between two moments, and their answers.

    Latencies are those of good answers, from the request's arrival at the API server to the end of its answer.
    """
    found = requests_of_hpas(events, since, until)
    good = [event for event in found if event.code == 200]
    latencies = sorted(1000 * event.seconds for event in good)
    return AskedByHpas(
        codes=Counter(event.code for event in found),
        p50_ms=_rounded(quantile(latencies, 0.5)),
        p99_ms=_rounded(quantile(latencies, 0.99)),
        max_ms=_rounded(latencies[-1] if latencies else None),
    )


def asked_by_adapter(events: Sequence[AuditEvent], account: str, since: datetime, until: datetime) -> AskedByAdapter:
    """Return what a service account requested between two moments; a watch counts when it begins."""
    found = [event for event in events if event.user == account and since <= event.start < until and _counts(event)]
    return AskedByAdapter(
        lists=tuple(event.uri for event in found if event.verb == "list" or _STREAMED in event.uri),
        watches=tuple(event.uri for event in found if event.verb == "watch" and _STREAMED not in event.uri),
        reviews=sum(event.resource in REVIEWS for event in found),
        others=tuple(
            f"{event.verb} {event.uri}"
            for event in found
            if event.verb not in ("list", "watch") and event.resource not in REVIEWS
        ),
    )


def _counts(event: AuditEvent) -> bool:
    """Return whether this is the line that counts for its request: an answered watch has two."""
    return (event.stage == "ResponseStarted") == (event.verb == "watch" and event.code == 200)


def _rounded(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds, 2)
