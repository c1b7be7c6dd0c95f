"""The queries of one explanation: those that a request would wait for, sent now, without using memory.

`FreshQueries` takes the place of `QueryScheduler` and `CurrentReadings` for code that reads through them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from adapter.foundation.promql.tree_parser import UnreadableQueryError
from adapter.foundation.sources.objects import ObjectsError
from adapter.metrics.readings.answers import BySelector
from adapter.metrics.readings.asking.demand import DemandedRequest, DemandEntry
from adapter.metrics.readings.asking.queries import Query, QueryGroup, QueryScope, Reading, render
from adapter.metrics.readings.asking.query_choice import query_key
from adapter.metrics.readings.errors import SourceSlowError, UnanswerableSelectorError
from adapter.metrics.readings.explain.explanation import Outcome
from adapter.metrics.readings.failure import Failure
from adapter.metrics.readings.prometheus_uptime import ASK_SECONDS, PrometheusUptime
from adapter.metrics.readings.refreshing.refreshers import Refreshers
from adapter.metrics.readings.samples.shared_names import SharedNames
from adapter.metrics.rulebook.model import Metric, PlanKind, Rule
from adapter.metrics.rulebook.plans import plan_of
from adapter.metrics.rulebook.query_rendering import RenderError

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from adapter.foundation.objects.resources import ResolveResource, Resource
    from adapter.foundation.objects.selectors import Selector
    from adapter.foundation.sources.prometheus.errors import PrometheusError
    from adapter.metrics.readings.explain.explanation_progress import Progress
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.readings.samples.object_reading import Dropped

_OF_PROMQL = "PromQL "
_SHARE = 2.1
"""The remaining time is divided by this to get a query's deadline, so that there is time for two queries, and for
asking when Prometheus started."""


class FreshQueries:
    """Asks each query once. For one explanation and one thread."""

    def __init__(self, sources: ReadingSources, progress: Progress, metric: Metric) -> None:
        """`metric` is the one whose query the explanation shows; others may be queried beside it."""
        self.dropped_samples: Counter[Dropped] = Counter()
        """Samples that are not the value of any object; counted only here, since an explanation is not a refresh."""
        self._sources = sources
        self._progress = progress
        self._metric = metric
        self._entries: dict[str, DemandEntry] = {}

    def entry(self, metric: Metric, request: DemandedRequest, _part: Hashable = None) -> DemandEntry:
        """Return the metric's entry, which is not queried yet. Raises UnanswerableSelectorError."""
        entry = self._entries.get(metric.qualified)
        if entry is None:
            plan = plan_of(metric, request.selector.keys if request.which is None else frozenset())
            wider = isinstance(request.which, BySelector) and PlanKind.NAMESPACE in plan.proven
            query = _query(metric, request, PlanKind.NAMESPACE if wider else PlanKind.EXACT)
            group = QueryGroup((), metric, plan)
            entry = DemandEntry(request, metric, QueryScope(group, query, query), self._sources.clock.monotonic())
            self._entries[metric.qualified] = entry
        return entry

    def current(self, entry: DemandEntry, _until: float = 0.0) -> Reading:
        """Return the reading of an entry; the first call queries it. Raises ReadingError."""
        query = entry.scope.query
        if query.reading is None and query.failure is None:
            outcome = self._ask(query)
            if isinstance(outcome, Failure) and outcome.narrows and self._can_narrow(query):
                text = "the query for the whole namespace fails, so only the requested objects are queried"
                self._progress.note("query", Outcome.INFO, text)
                query = _query(entry.metric, entry.request, PlanKind.EXACT)
                entry.scope = QueryScope(entry.scope.group, query, query)
                outcome = self._ask(query)
            if isinstance(outcome, Failure):
                query.failure = outcome
            else:
                query.reading = outcome
        if query.failure is not None:
            raise query.failure.to_error()
        return cast("Reading", query.reading)

    def count_dropped_samples(self, tally: Counter[Dropped]) -> None:
        """Count samples that are not the value of any object."""
        self.dropped_samples.update(tally)

    def remark(self, _rule: Rule, kind: str, _message: str, *_args: object) -> None:
        """Note remarks of Prometheus on a query; all other remarks show in the reading."""
        if kind.startswith(_OF_PROMQL):
            self._progress.note("query", Outcome.INFO, f"Prometheus notes: {kind.rstrip(': ')}")

    def _ask(self, query: Query) -> Reading | Failure:
        left = self._progress.seconds_left()
        if left <= 0:
            text = f"{query.metric.qualified}: not queried: over the limit of {self._progress.patience.total:g} s"
            return Failure(SourceSlowError, text)
        if query.metric is self._metric:
            self._progress.query = self._sent_query(query)
        deadline = min(self._progress.patience.request, left / _SHARE)
        settings = replace(self._sources.settings, query_deadline_seconds=deadline)
        names = SharedNames(self._sources.clock.monotonic)
        return Refreshers(replace(self._sources, settings=settings), names, self, self, _Unblaming).ask(query)

    def _can_narrow(self, query: Query) -> bool:
        """Return whether there is a narrower query, which names its objects; their names must be known."""
        return query.kind is not PlanKind.EXACT and not isinstance(self._sources.objects, SeenObjects)

    def _sent_query(self, query: Query) -> str:
        """Return a query with the matchers that every query gets; a query that cannot be given them is not sent."""
        text, backend, matchers = self._text(query), query.key.backend, self._sources.settings.matchers
        if backend is not None:
            matchers = backend.with_matchers(matchers).matchers
        if matchers is None:
            return text
        try:
            return matchers.in_query(text)
        except UnreadableQueryError:
            return text

    def _text(self, query: Query) -> str:
        """Return the query as it is rendered; as planned if the objects whose names it would contain are not known."""
        which, resource = query.key.which, query.key.resource
        try:
            if which is not None and resource is not None:
                names = tuple(self._sources.objects.names(resource, query.key.namespace, which.selector))
                return render(query, names)[0].text
        except (ObjectsError, RenderError):
            pass
        return query.key.planned.text


class _Unblaming:
    """Protects what a process knows about Prometheus's availability from the short timeouts of an explanation."""

    def __init__(self, uptime: PrometheusUptime) -> None:
        self.note_answer = uptime.note_answer
        self.seconds_at = uptime.seconds_at
        self._ask_start = uptime.ask_start

    def note_failure(self, _error: PrometheusError, _began: float) -> None:
        """Ignore the failure."""

    def ask_start(self, seconds: float) -> None:
        """Ask Prometheus when it started, but only if there is as much time for that as usual."""
        if seconds >= ASK_SECONDS:
            self._ask_start(seconds)


class SeenObjects:
    """The objects that samples name, for use when there is no cluster to list them."""

    def __init__(self, resolve: ResolveResource) -> None:
        self.resource = resolve
        self.seen: Sequence[str] = ()
        """The names of the objects, in ascending order; must be set before they are requested."""

    def names(self, _resource: Resource, _namespace: str | None, _selector: Selector) -> Collection[str]:
        """Return all names that were seen."""
        return self.seen

    def labels_of(self, _resource: Resource, _namespace: str | None, _name: str) -> Mapping[str, str]:
        """Return no labels; any object may exist."""
        return {}

    def namespaces_of(self, _resource: Resource) -> Collection[str]:
        """Return none: the question names the namespace."""
        return ()

    def is_synced(self, _resource: Resource) -> bool:
        """Return False, since the objects of the cluster are not known."""
        return False

    def await_first_list(self, _resource: Resource, _seconds: float) -> None:
        """Wait for nothing: there is no list."""

    def unreadable(self, _resource: Resource, _namespace: str | None) -> int:
        """Return 0: no object is read."""
        return 0


def _query(metric: Metric, request: DemandedRequest, kind: PlanKind) -> Query:
    """Return a query without demand. Raises UnanswerableSelectorError."""
    try:
        return Query(query_key(kind, metric, request), metric, request.selector, 0.0)
    except RenderError as error:
        raise UnanswerableSelectorError(f"{metric.qualified}: {error}") from error
