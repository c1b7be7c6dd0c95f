"""The requests in demand: each different request once, with a limit for each namespace."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from adapter.metrics.readings.asking.periods import Arrivals
from adapter.metrics.readings.errors import TooMuchDemandError

if TYPE_CHECKING:
    from adapter.foundation.objects.selectors import Selector
    from adapter.metrics.readings.answers import ByName, BySelector
    from adapter.metrics.readings.asking.queries import QueryScope
    from adapter.metrics.readings.readings_settings import ReadingSettings
    from adapter.metrics.rulebook.model import Metric


class DemandedRequest(NamedTuple):
    """A request, the same for every client that sends it.

    A tuple, since it is the key of the look-up that every request pays.
    """

    metric: str
    """Qualified name in the API."""
    namespace: str | None
    which: ByName | BySelector | None
    """The requested objects; None for external metrics."""
    selector: Selector
    """The metric's selector."""


class DemandEntry:
    """A request in demand, and the scope that has its answer."""

    __slots__ = ("arrivals", "metric", "request", "scope")

    def __init__(self, request: DemandedRequest, metric: Metric, scope: QueryScope, now: float) -> None:
        self.request = request
        self.metric = metric
        self.scope = scope
        self.arrivals = Arrivals(now)


class Demand:
    """All requests in demand. Reading is thread-safe; the owner must lock around changes."""

    def __init__(self, settings: ReadingSettings) -> None:
        self._ttl_seconds = settings.demand_ttl_seconds
        self._once_seconds = min(settings.once_asked_ttl_seconds, settings.demand_ttl_seconds)
        self._bound_per_namespace = settings.max_demand_per_namespace
        self._bound = settings.max_demand
        self._entries: dict[DemandedRequest, DemandEntry] = {}
        self._by_namespace: Counter[str | None] = Counter()

    def find(self, request: DemandedRequest) -> DemandEntry | None:
        """Return the request's entry; None if the request is new."""
        return self._entries.get(request)

    def check_room(self, namespace: str | None) -> None:
        """Raise TooMuchDemandError if the limit of the namespace, or of all namespaces, is reached."""
        once = f"a request that is not repeated within {self._once_seconds:g} s is forgotten"
        forgotten = f"{once}, others after four of their intervals"
        if self._by_namespace[namespace] >= self._bound_per_namespace:
            where = f"namespace {namespace!r}" if namespace else "cluster-scoped objects"
            raise TooMuchDemandError(
                f"{where}: {self._bound_per_namespace} different requests are in demand already "
                "(--max-demand-per-namespace); "
                f"{forgotten}"
            )
        if len(self._entries) >= self._bound:
            raise TooMuchDemandError(
                f"{self._bound} different requests are in demand already in all namespaces; {forgotten}"
            )

    def add(self, entry: DemandEntry) -> None:
        """Add a new request."""
        self._entries[entry.request] = entry
        self._by_namespace[entry.request.namespace] += 1

    def remove(self, entry: DemandEntry) -> None:
        """Forget a request."""
        del self._entries[entry.request]
        self._by_namespace[entry.request.namespace] -= 1
        if not self._by_namespace[entry.request.namespace]:
            del self._by_namespace[entry.request.namespace]

    def expired(self, entry: DemandEntry, now: float) -> bool:
        """Return whether the request has not been repeated for so long that it must be forgotten."""
        return now > entry.arrivals.stands_until(self._once_seconds, self._ttl_seconds)

    def holds(self, entry: DemandEntry) -> bool:
        """Return whether the entry is still in demand."""
        return self._entries.get(entry.request) is entry

    def entries(self) -> list[DemandEntry]:
        """Return the entries that are in demand now."""
        return list(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)
