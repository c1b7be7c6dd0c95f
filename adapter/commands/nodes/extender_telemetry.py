"""Counts and times the requests of kube-scheduler."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from adapter.foundation.web.routes import Route, plain_refusal

if TYPE_CHECKING:
    from adapter.foundation.web.http import RefusedRequestError, Request, Response

VERBS: Final = ("filter", "prioritize")
_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class ExtenderMetrics:
    """Exposes `PREFIX_extender_requests_total{verb,code}` and `PREFIX_extender_request_duration_seconds{verb}`."""

    def __init__(self, registry: CollectorRegistry, prefix: str) -> None:
        self._requests = Counter(
            f"{prefix}_extender_requests", "Requests of kube-scheduler.", ["verb", "code"], registry=registry
        )
        self._seconds = Histogram(
            f"{prefix}_extender_request_duration_seconds",
            "Time to answer a request, excluding receiving and sending.",
            ["verb"],
            buckets=_BUCKETS,
            registry=registry,
        )
        for verb in VERBS:
            self._requests.labels(verb, "200")
            self._seconds.labels(verb)

    def count_answers(self, route: Route) -> Route:
        """Return a route that counts and times its answers if kube-scheduler uses it; any other route is unchanged."""
        verb = _verb(route.path)
        if verb is None:
            return route
        handle, admit, seconds = route.handle, route.admit, self._seconds.labels(verb)

        def answer(request: Request) -> Response:
            began = perf_counter()
            response = handle(request)
            seconds.observe(perf_counter() - began)
            self._requests.labels(verb, str(response.status)).inc()
            return response

        def judge(request: Request) -> Response | None:
            refusal = admit(request) if admit else None
            if refusal is not None:
                self._requests.labels(verb, str(refusal.status)).inc()
            return refusal

        return replace(route, handle=answer, admit=judge)

    def refuse(self, request: Request, error: RefusedRequestError) -> Response:
        """Answer and count a request that is refused before any handler sees it, such as one that is too large."""
        verb = _verb(request.path)
        if verb is not None:
            self._requests.labels(verb, str(error.status)).inc()
        return plain_refusal(request, error)


def _verb(path: str) -> str | None:
    last = path.rpartition("/")[2]
    return last if path.startswith("/scheduler/") and last in VERBS else None
