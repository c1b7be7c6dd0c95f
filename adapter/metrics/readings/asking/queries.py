"""Queries, and the path from a request to the query that answers it.

    Entry ──> Scope ──> Query ──> reading
              │
              └──> Group: the plan that all of them share

Many requests share a scope, many scopes a query. So a plan is changed by setting a scope, not by touching ten thousand
requests. All changes are made under the lock of `AskingState`; requests read without it.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from adapter.metrics.readings.asking.refused_plans import WIDE_PLACE, Setbacks
from adapter.metrics.rulebook.model import Metric, Plan, PlanKind
from adapter.metrics.rulebook.plans import planned_query
from adapter.metrics.rulebook.plans.sample_age import times_of
from adapter.metrics.rulebook.requests import Asked, PlannedQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.objects.selectors import Selector
    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.metrics.readings.answers import BySelector
    from adapter.metrics.readings.failure import Failure
    from adapter.metrics.readings.samples.external_reading import ExternalReading
    from adapter.metrics.readings.samples.object_reading import ObjectReading


Reading: TypeAlias = "ObjectReading | ExternalReading"


_MOST_INDEXED = 16
"""Limit on the labels by which the rows of an external metric are indexed with each refresh; a request does it for
others."""


class Lane(Enum):
    """Classes of queries by their duration."""

    FIRST = "first"
    """The query was never sent, and a request may be waiting for it."""
    QUICK = "quick"
    SLOW = "slow"


class QueryKey(NamedTuple):
    """The identity of a query: its server, its text and how samples are assigned, but not its rule.

    So a reading outlives a reload that moves or renames its rule, and rules with the same content share a query.
    """

    planned: PlannedQuery
    """The query; if names are filled in at each refresh, the query for a made-up name."""
    namespace: str | None
    """Namespace that the query is restricted to."""
    namespace_label: str | None
    which: BySelector | None
    """Objects whose names are filled in; None if the text is fixed."""
    resource: Resource | None
    """The kind of the objects: a label may contain names of pods for one rule and names of services for another."""
    times: PlannedQuery | None = None
    """The query for the times of the samples behind the values, sent for the same instant. None if no rule limits
    their age."""
    backend: Backend | None = None
    """The Prometheus that is asked; None for that of the flags."""


class Query:
    """One query, which is refreshed as long as a request needs it."""

    __slots__ = (
        "__weakref__",
        "asleep",
        "bound_at",
        "failure",
        "failures",
        "groups",
        "hold_silent_seconds",
        "joining",
        "key",
        "labels",
        "lane",
        "mark",
        "metric",
        "paced",
        "payers",
        "period",
        "rationed",
        "reading",
        "seconds",
        "selector",
        "settled",
        "started_at",
    )

    def __init__(self, key: QueryKey, metric: Metric, selector: Selector, period: float) -> None:
        self.key = key
        self.metric = metric
        """The metric; if several share the query, one of them."""
        self.hold_silent_seconds = 0.0
        """The longest time for which any rule that shares the query holds silent series."""
        self.selector = selector
        """The metric's selector, if the text is not fixed."""
        self.period = period
        """Seconds between refreshes."""
        self.paced = False
        """Whether the period follows from how often a request is repeated."""
        self.rationed = False
        """Whether it is sent only after a request: it replaces a wider query that was refused."""
        self.asleep = False
        """Whether it is rationed and not due before the next request."""
        self.seconds: float | None = None
        """Duration of the last run; None before the first one has ended."""
        self.payers: set[str | None] = set()
        """Namespaces whose requests the query answers, if it is exact."""
        self.mark: int | None = None
        """Hash of the answer, set by `SharedAnswers`."""
        self.reading: Reading | None = None
        """The last good reading."""
        self.failure: Failure | None = None
        """Why the last refresh failed; None if it succeeded."""
        self.failures = 0
        """The number of consecutive failures."""
        self.settled = threading.Event()
        """Event that is set once there is a reading or a failure."""
        self.lane = Lane.FIRST
        """The lane in which the query runs; only `Lanes` sets it."""
        self.started_at = 0.0
        self.bound_at = 0.0
        """Time at which a scope was last bound to the query, in monotonic seconds."""
        self.groups: set[QueryGroup] = set()
        self.labels: frozenset[str] = frozenset()
        """Labels by which requests for an external metric select rows."""
        self.joining: list[QueryScope] = []
        """Scopes that use another query's readings until this one has its first."""

    @property
    def kind(self) -> PlanKind:
        """How widely the query asks: for all requests, for one namespace, or exactly."""
        return self.key.planned.kind

    def index_by(self, selector: Selector) -> None:
        """Let the rows of an external metric be indexed by the labels of a selector, as far as there is room."""
        if self.metric.resource is None:
            room = _MOST_INDEXED - len(self.labels)
            self.labels |= set(sorted(selector.keys - self.labels)[:room])

    def requesters(self) -> Iterator[str | None]:
        """Yield the namespaces that ask for it; a namespace may occur twice."""
        if self.kind is PlanKind.EXACT:
            yield from self.payers
            return
        for group in self.groups:
            yield from group.asking


@dataclass(eq=False, slots=True)
class QueryGroup:
    """Requests that one wide query would answer.

    They have one metric and one selector in common. Requests for an external metric, whose rows are filtered later,
    have the labels of their selectors in common instead.
    """

    key: tuple[object, ...]
    metric: Metric
    plan: Plan
    refused: set[PlanKind] = field(default_factory=set)
    """Plans that are proven, but must not be used until the next reload."""
    setbacks: Setbacks = field(default_factory=Setbacks)
    """Plans that Prometheus refused and that will be tried again."""
    asking: Counter[str | None] = field(default_factory=Counter)
    """Number of requests by namespace."""
    scopes: dict[str | None, QueryScope] = field(default_factory=dict)
    """Scopes by namespace while the plan is not exact; each exact request has its own."""
    apart: dict[str | None, set[QueryScope]] = field(default_factory=dict)
    """Scopes of exact requests, by namespace."""
    kind: PlanKind = PlanKind.EXACT
    retired: bool = False
    """Whether a reload has replaced it, so that its requests must look for another group."""

    def best_kind(self, namespace_limit: int) -> PlanKind:
        """Return the plan to use: one query per namespace while few namespaces ask, or one for all namespaces."""
        return self._best(
            namespace_limit, self.refused | {PlanKind.WIDE} if WIDE_PLACE in self.setbacks else self.refused
        )

    def wanted_kind(self, namespace_limit: int) -> PlanKind:
        """Return the plan that would be used if Prometheus had refused none."""
        return self._best(namespace_limit, self.refused)

    def kind_in(self, namespace: str | None) -> PlanKind:
        """Return the plan that is used for a namespace: the exact one if the namespace's own query was refused."""
        failed = self.kind is PlanKind.NAMESPACE and (PlanKind.NAMESPACE, namespace) in self.setbacks
        return PlanKind.EXACT if failed else self.kind

    def kinds(self) -> set[PlanKind]:
        """Return the plans in use; there are two if single namespaces' own queries were refused."""
        if self.kind is not PlanKind.NAMESPACE:
            return {self.kind}
        apart = sum(kind is PlanKind.NAMESPACE for kind, _ in list(self.setbacks))
        return {kind for kind, used in ((self.kind, apart < len(self.asking)), (PlanKind.EXACT, apart)) if used}

    def leave(self, namespace: str | None, scope: QueryScope | None) -> None:
        """Remove a request of a namespace; `scope` is None if it has none yet."""
        self.asking[namespace] -= 1
        if scope is not None and (apart := self.apart.get(namespace)):
            apart.discard(scope)
            if not apart:
                del self.apart[namespace]
        if not self.asking[namespace]:
            del self.asking[namespace]
            self.scopes.pop(namespace, None)
            self.apart.pop(namespace, None)
            self.setbacks.leave(namespace)

    def retire(self, namespaces: Iterable[str | None]) -> None:
        """Make the requests of some namespaces look for other scopes when they next arrive."""
        for namespace in namespaces:
            scope = self.scopes.pop(namespace, None)
            if scope is not None:
                scope.retired = True

    def _best(self, namespace_limit: int, refused: set[PlanKind]) -> PlanKind:
        usable = self.plan.proven - refused
        if self.metric.namespace_label is None:
            usable -= {PlanKind.NAMESPACE}
        if PlanKind.NAMESPACE in usable and (len(self.asking) <= namespace_limit or PlanKind.WIDE not in usable):
            return PlanKind.NAMESPACE
        return PlanKind.WIDE if PlanKind.WIDE in usable else PlanKind.EXACT


@dataclass(eq=False, slots=True)
class QueryScope:
    """Requests that are answered by the same query: those of one namespace in a group, or a single request."""

    group: QueryGroup
    query: Query
    """The query that answers now."""
    wanted: Query
    """The query that should answer; the same as `query` except while a change of plan waits for its first reading."""
    private: bool = False
    """Whether it has one request, which keeps its former query until the query that it will share has a reading."""
    retired: bool = False
    """Whether its requests must look for another scope."""

    def aim(self, query: Query) -> None:
        """Change to another query: at once if it has a reading or the current one has none, else with its first."""
        self.wanted = query
        if query.reading is not None or self.query.reading is None:
            self.query = query
        elif query is not self.query:
            query.joining.append(self)


def render(query: Query, names: tuple[str, ...]) -> tuple[PlannedQuery, PlannedQuery | None]:
    """Return the queries to send now: as planned, or for exactly these objects if the query contains names.

    The second asks for the times of the samples; None if the rule does not limit their age. Raises RenderError.
    """
    if query.key.which is None:
        return query.key.planned, query.key.times
    return planned_with_times(query.metric, Asked(query.key.namespace, names, query.selector), PlanKind.EXACT)


def planned_with_times(metric: Metric, asked: Asked, kind: PlanKind) -> tuple[PlannedQuery, PlannedQuery | None]:
    """Return the query of this plan, and the one for the times of its samples if the rule limits their age.

    Raises RenderError.
    """
    times = times_of(metric)
    return planned_query(metric, asked, kind), None if times is None else planned_query(times, asked, kind)
