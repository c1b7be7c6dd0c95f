"""The queries that are asked, and the way from a request to the query that answers it.

    Entry ──> Scope ──> Query ──> reading
              │
              └──> Group: the plan that all of them share

Many requests share a scope, many scopes a query. So a change of plan is made by setting a scope, not by touching ten
thousand requests. All of it is changed under the lock of `QueryScheduler`; requests read it without.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from adapter.readings.asking.setbacks import WIDE_PLACE, Setbacks
from adapter.rulebook.model import PlanKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.objects.resources import Resource
    from adapter.objects.selectors import Selector
    from adapter.readings.answers import BySelector
    from adapter.readings.failure import Failure
    from adapter.readings.samples.external_reading import ExternalReading
    from adapter.readings.samples.object_reading import ObjectReading
    from adapter.rulebook.model import Metric, Plan
    from adapter.rulebook.requests import PlannedQuery

Reading: TypeAlias = "ObjectReading | ExternalReading"


class Lane(Enum):
    """How long a query takes, as far as that is known."""

    FIRST = "first"
    """Not known: the query was never sent, and a request may be waiting for it."""
    QUICK = "quick"
    SLOW = "slow"


class QueryKey(NamedTuple):
    """What makes two queries one: what is sent and how the samples are assigned, and not which rule says so.

    So a reading outlives a reload that moves or renames its rule, and two rules that say the same are asked once.
    """

    planned: PlannedQuery
    """Where names are filled in anew with each refresh: the query for a made-up name."""
    namespace: str | None
    """The namespace that it is restricted to."""
    namespace_label: str | None
    which: BySelector | None
    """The objects whose names are filled in; None where the text is fixed."""
    resource: Resource | None
    """Their kind: one label may hold the names of pods to one rule and of services to another."""
    times: PlannedQuery | None = None
    """Asked at the same instant: the times of the samples that the values are made of. None where no rule limits it."""


class Query:
    """One query, refreshed as long as somebody needs it."""

    __slots__ = (
        "__weakref__",
        "asleep",
        "bound_at",
        "failure",
        "failures",
        "groups",
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
        """The metric that is asked for; of several that share the query, one."""
        self.selector = selector
        """The metric's selector, where the text is not fixed."""
        self.period = period
        """Seconds between refreshes."""
        self.paced = False
        """Whether the period follows from how often a request is repeated."""
        self.rationed = False
        """Whether it is sent only after a request: it replaces a wider query that was refused."""
        self.asleep = False
        """Whether it is rationed and not due before the next request."""
        self.seconds: float | None = None
        """How long it took the last time; None before it has ended once."""
        self.payers: set[str | None] = set()
        """An exact query: the namespaces whose requests it answers."""
        self.mark: int | None = None
        """A hash of its answer, set by `SharedAnswers`."""
        self.reading: Reading | None = None
        """The last good reading."""
        self.failure: Failure | None = None
        """Why the last refresh failed; None after one that did not."""
        self.failures = 0
        """Consecutive failures."""
        self.settled = threading.Event()
        """Set once there is a reading or a failure."""
        self.lane = Lane.FIRST
        """Set by `Lanes` alone."""
        self.started_at = 0.0
        self.bound_at = 0.0
        """When a scope was last pointed at it, in monotonic seconds."""
        self.groups: set[QueryGroup] = set()
        self.labels: frozenset[str] = frozenset()
        """External metrics: labels that askers select rows by."""
        self.joining: list[QueryScope] = []
        """Scopes that go on with another query's readings until this one has its first."""

    @property
    def kind(self) -> PlanKind:
        """How widely it asks."""
        return self.key.planned.kind

    def askers(self) -> Iterator[str | None]:
        """Yield the namespaces that ask for it; one may come twice."""
        if self.kind is PlanKind.EXACT:
            yield from self.payers
            return
        for group in self.groups:
            yield from group.asking


@dataclass(eq=False, slots=True)
class QueryGroup:
    """Requests that one wide query would answer.

    Of one metric, with one selector; for external metrics, which are filtered afterwards, with one set of selector
    labels.
    """

    key: tuple[object, ...]
    metric: Metric
    plan: Plan
    refused: set[PlanKind] = field(default_factory=set)
    """Plans that are proven and not to be used nevertheless until the next reload."""
    setbacks: Setbacks = field(default_factory=Setbacks)
    """Plans that Prometheus refused, and that are tried again."""
    asking: Counter[str | None] = field(default_factory=Counter)
    """Namespaces, and how many requests stand in each."""
    scopes: dict[str | None, QueryScope] = field(default_factory=dict)
    """By namespace, while the plan is not exact; exact requests have a scope each."""
    apart: dict[str | None, set[QueryScope]] = field(default_factory=dict)
    """By namespace, the scopes of exact requests."""
    kind: PlanKind = PlanKind.EXACT
    retired: bool = False
    """A reload has taken its place: its requests must look for another group."""

    def best_kind(self, namespace_limit: int) -> PlanKind:
        """Return the plan to use: one query a namespace while few namespaces ask, one for all when more do."""
        return self._best(
            namespace_limit, self.refused | {PlanKind.WIDE} if WIDE_PLACE in self.setbacks else self.refused
        )

    def wanted_kind(self, namespace_limit: int) -> PlanKind:
        """Return the plan that would be used if Prometheus had refused none."""
        return self._best(namespace_limit, self.refused)

    def kind_in(self, namespace: str | None) -> PlanKind:
        """Return the plan that is used for a namespace: where its own query was refused that is the exact one."""
        failed = self.kind is PlanKind.NAMESPACE and (PlanKind.NAMESPACE, namespace) in self.setbacks
        return PlanKind.EXACT if failed else self.kind

    def kinds(self) -> set[PlanKind]:
        """Return the plans in use: two where some namespaces' own queries were refused."""
        if self.kind is not PlanKind.NAMESPACE:
            return {self.kind}
        apart = sum(kind is PlanKind.NAMESPACE for kind, _ in list(self.setbacks))
        return {kind for kind, used in ((self.kind, apart < len(self.asking)), (PlanKind.EXACT, apart)) if used}

    def _best(self, namespace_limit: int, refused: set[PlanKind]) -> PlanKind:
        usable = self.plan.proven - refused
        if self.metric.namespace_label is None:
            usable -= {PlanKind.NAMESPACE}
        if PlanKind.NAMESPACE in usable and (len(self.asking) <= namespace_limit or PlanKind.WIDE not in usable):
            return PlanKind.NAMESPACE
        return PlanKind.WIDE if PlanKind.WIDE in usable else PlanKind.EXACT


@dataclass(eq=False, slots=True)
class QueryScope:
    """Requests that are answered by the same query: those of one namespace in a group, or one request alone."""

    group: QueryGroup
    query: Query
    """Gives the answers now."""
    wanted: Query
    """Is to give them; the same as `query` except while a change of plan waits for its first reading."""
    private: bool = False
    """Of one request, which goes on with what answered it until the query that it shall share has a reading."""
    retired: bool = False
    """Its requests must look for another scope."""

    def aim(self, query: Query) -> None:
        """Want another query: at once if it has a reading or there is none to lose, else when it has one."""
        self.wanted = query
        if query.reading is not None or self.query.reading is None:
            self.query = query
        elif query is not self.query:
            query.joining.append(self)
