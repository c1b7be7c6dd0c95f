"""The requests in demand: each different one once, and how often it is repeated."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from adapter.metrics.readings.answers import ByName
from adapter.metrics.readings.asking.request_intervals import Arrivals, ArrivalsByPart
from adapter.metrics.readings.errors import TooMuchDemandError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from adapter.foundation.objects.selectors import Selector
    from adapter.metrics.readings.answers import BySelector
    from adapter.metrics.readings.asking.queries import QueryScope
    from adapter.metrics.readings.readings_settings import ReadingSettings
    from adapter.metrics.rulebook.model import Metric

_COUNTED_CHARACTERS = 1024
"""A request counts once more for each group of so many characters of its selectors. In memory, a selector takes ten
times its length, so that one request could be as large as a thousand ordinary ones."""

_KEPT_AGES = 2
"""Multiple of the longest age of an answer for which a request that is not repeated stays while Prometheus is away."""


class DemandedRequest(NamedTuple):
    """A request, which is the same whichever client sends it.

    It is a tuple, since it is the key of a look-up that every request makes.
    """

    metric: str
    """Qualified name in the API."""
    namespace: str | None
    which: ByName | BySelector | None
    """The requested objects; None for external metrics."""
    selector: Selector
    """The metric's selector."""

    @property
    def row_labels(self) -> frozenset[str]:
        """The labels by which it selects rows; none for objects, whose selector is a part of the query."""
        return self.selector.keys if self.which is None else frozenset()

    @property
    def counts_as(self) -> int:
        """As how many requests it counts."""
        of_objects = 0 if self.which is None or isinstance(self.which, ByName) else len(self.which.selector.text)
        return 1 + (of_objects + len(self.selector.text)) // _COUNTED_CHARACTERS


class DemandEntry:
    """A request in demand, and the scope that has its answer."""

    __slots__ = ("arrivals", "metric", "request", "scope")

    def __init__(
        self, request: DemandedRequest, metric: Metric, scope: QueryScope, now: float, part: Hashable = None
    ) -> None:
        self.request = request
        self.metric = metric
        self.scope = scope
        self.arrivals = Arrivals(now) if part is None else ArrivalsByPart(now, part)


class Demand:
    """All requests in demand. Reading is thread-safe; the owner must lock around changes."""

    def __init__(self, settings: ReadingSettings) -> None:
        self._ttl_seconds = settings.demand_ttl_seconds
        self._once_seconds = min(settings.once_asked_ttl_seconds, settings.demand_ttl_seconds)
        self._max_answer_age_seconds = settings.max_answer_age_seconds
        self._bound_per_namespace = settings.max_demand_per_namespace
        self._bound = settings.max_demand
        self._entries: dict[DemandedRequest, DemandEntry] = {}
        self._by_namespace: Counter[str | None] = Counter()
        self._total = 0

    def find(self, request: DemandedRequest) -> DemandEntry | None:
        """Return the request's entry; None if the request is new."""
        return self._entries.get(request)

    def check_room(self, namespace: str | None) -> None:
        """Raise TooMuchDemandError if the limit of the namespace, or of all namespaces, is reached."""
        once = f"a request that is not repeated within {self._once_seconds:g} s is forgotten"
        forgotten = f"each counts once for each KiB of its selectors; {once}, any other after four of its intervals"
        if self._by_namespace[namespace] >= self._bound_per_namespace:
            where = f"namespace {namespace!r}" if namespace else "cluster-scoped objects"
            raise TooMuchDemandError(
                f"{where}: {self._bound_per_namespace} different requests are in demand already "
                "(--max-demand-per-namespace); "
                f"{forgotten}"
            )
        if self._total >= self._bound:
            raise TooMuchDemandError(
                f"{self._bound} different requests are in demand already in all namespaces; {forgotten}"
            )

    def add(self, entry: DemandEntry) -> None:
        """Add a new request."""
        self._entries[entry.request] = entry
        self._count(entry.request, entry.request.counts_as)

    def remove(self, entry: DemandEntry) -> None:
        """Forget a request."""
        del self._entries[entry.request]
        self._count(entry.request, -entry.request.counts_as)

    def _count(self, request: DemandedRequest, count: int) -> None:
        self._total += count
        self._by_namespace[request.namespace] += count
        if not self._by_namespace[request.namespace]:
            del self._by_namespace[request.namespace]

    def is_expired(self, entry: DemandEntry, now: float) -> bool:
        """Return whether the request was last repeated so long ago that it must be forgotten.

        It is not while Prometheus may have been away since then: a requester that pauses, as while another replica
        takes over, still gets the last good answer, and once that is too old, its age. An answer that is too old only
        because its query waits for a request is of no use: the next request, as a new one, waits for a newer answer.
        """
        query = entry.scope.query
        reading = query.reading
        too_old_at = math.inf if reading is None else reading.evaluated.monotonic + self._max_answer_age_seconds
        if query.asleep and query.failure is None and now > too_old_at:
            return True
        stands_until = entry.arrivals.stands_until(self._once_seconds, self._ttl_seconds)
        if now <= stands_until:
            return False
        if reading is None or now > entry.arrivals.last + self._ttl_seconds:
            return True
        answered = reading.evaluated.monotonic
        return answered >= stands_until or now > answered + _KEPT_AGES * self._max_answer_age_seconds

    def holds(self, entry: DemandEntry) -> bool:
        """Return whether the entry is still in demand."""
        return self._entries.get(entry.request) is entry

    def entries(self) -> list[DemandEntry]:
        """Return the entries that are in demand now."""
        return list(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)
