"""Chooses the query that answers a request: by demand, and by the plans that Prometheus has refused.

A plan that is proven may still be refused: by limits, or because the wider query joins series that the narrower one
keeps apart. The group then falls back to the next narrower plan, or only one namespace does if it was that namespace's
query, until a trial shows that the wider plan works again (`refused_plans`). A time-out does not count: narrower plans
send more queries, and a server that is too slow for one must not get more of them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.foundation.objects.selectors import EVERYTHING, Selector
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.asking.demand import DemandedRequest
from adapter.metrics.readings.asking.effects import Remark
from adapter.metrics.readings.asking.proven_plans import ProvenPlans, identity_of
from adapter.metrics.readings.asking.queries import Query, QueryGroup, QueryKey, QueryScope, planned_with_times
from adapter.metrics.readings.asking.refresh_periods import longest_period
from adapter.metrics.readings.asking.refused_plans import WIDE_PLACE, Place, Setbacks
from adapter.metrics.readings.errors import UnanswerableSelectorError
from adapter.metrics.rulebook.model import Api, Metric, PlanKind
from adapter.metrics.rulebook.query_rendering import RenderError, exact_query
from adapter.metrics.rulebook.requests import Asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.metrics.readings.readings_settings import ReadingSettings

_WIDER = frozenset({PlanKind.WIDE, PlanKind.NAMESPACE})
_ANY_NAME = "any"
"""A made-up name in place of the names that are filled in with each refresh."""


class Planner:
    """All groups and queries. Not thread-safe: the owner must lock."""

    def __init__(self, settings: ReadingSettings) -> None:
        self.queries: dict[QueryKey, Query] = {}
        self.plans = ProvenPlans()
        """The plans that are proven, and the metrics whose wider plans gave other values."""
        self._settings = settings
        self._groups: dict[tuple[object, ...], QueryGroup] = {}
        self._new: list[Query] = []
        self._remarks: list[Remark] = []

    def bind(self, metric: Metric, request: DemandedRequest, now: float, former: Query | None = None) -> QueryScope:
        """Return the scope of a request, which is in demand from now on.

        `former` may keep answering until the new query has a reading. Raises UnanswerableSelectorError, after which
        nothing has changed.
        """
        try:
            if request.which is None:
                # The wide query leaves the selector out: a request that has no exact query must not get a wide answer.
                exact_query(metric, Asked(request.namespace, (), request.selector))
            return self._bind(metric, request, now, former)
        except RenderError as error:
            raise UnanswerableSelectorError(f"{metric.qualified}: {error}") from error

    def release(self, request: DemandedRequest, scope: QueryScope, now: float) -> None:
        """Remove a request; a narrower plan may suffice for the remaining namespaces."""
        group = scope.group
        group.leave(request.namespace, scope)
        if request.namespace not in group.asking:
            # A query that other groups share stays, so it must not keep each group that ever used it.
            for query in (scope.query, scope.wanted):
                if query.kind is PlanKind.NAMESPACE or not group.asking:
                    query.groups.discard(group)
        if not group.asking and self._groups.get(group.key) is group:
            del self._groups[group.key]
            self.plans.release(group.metric, request.row_labels)
        elif not group.retired:
            self._adjust(group, request.selector, now)

    def narrow(self, query: Query, now: float, *, lasting: bool = False) -> list[tuple[QueryGroup, PlanKind]]:
        """Take a refused query out of use; return the groups that must use another plan now, with that plan.

        No other query is sent in its place before a request arrives: each request finds its narrower query by itself.
        """
        self.drop(query)
        namespace = query.key.namespace
        fallen = [group for group in query.groups if group.kind is query.kind and not group.retired]
        for group in fallen:
            if query.kind is PlanKind.WIDE or WIDE_PLACE not in group.setbacks:
                # A query that is refused for one namespace would also be refused for all.
                group.setbacks.fail(WIDE_PLACE, now, lasting=lasting)
            if query.kind is PlanKind.WIDE:
                group.kind = group.best_kind(self._namespace_limit(group))
                group.retire(list(group.scopes))
            else:
                group.setbacks.fail((PlanKind.NAMESPACE, namespace), now, lasting=lasting)
                group.retire([namespace])
        return [(group, group.kind_in(namespace)) for group in fallen]

    def suspended_plans(self, group: QueryGroup, namespace: str | None) -> Iterator[Place]:
        """Yield the plans that would serve a namespace if Prometheus had not refused them, the widest first."""
        if group.wanted_kind(self._namespace_limit(group)) is PlanKind.WIDE and WIDE_PLACE in group.setbacks:
            yield WIDE_PLACE
        if group.kind is PlanKind.NAMESPACE and (PlanKind.NAMESPACE, namespace) in group.setbacks:
            yield (PlanKind.NAMESPACE, namespace)

    def trial(self, group: QueryGroup, request: DemandedRequest, kind: PlanKind) -> Query:
        """Return the query of a wider plan, which does not answer requests yet. Raises RenderError."""
        query = Query(query_key(kind, group.metric, request), group.metric, request.selector, 0.0)
        query.index_by(request.selector)
        return query

    def restore(self, group: QueryGroup, place: Place, selector: Selector, now: float) -> None:
        """Use a plan again that a trial has shown to work."""
        group.setbacks.lift(place, now)
        namespaces = list(group.apart) if place == WIDE_PLACE else [place[1]]
        for namespace in namespaces:
            for scope in group.apart.pop(namespace, ()):
                scope.retired = True
        self._adjust(group, selector, now)

    def distrust(self, metric: Metric, now: float) -> None:
        """Use no wider plan for the metric until `forget` is called."""
        self.plans.distrust(metric)
        for group in list(self._groups.values()):
            if identity_of(group.metric) == identity_of(metric):
                group.refused |= _WIDER
                group.setbacks = Setbacks()
                self._adjust(group, EVERYTHING, now)

    def forget(self) -> None:
        """Start again after a reload: prove plans again and forget refusals. Queries keep their readings."""
        for group in self._groups.values():
            group.retired = True
        for query in self.queries.values():
            query.groups.clear()
        self._groups.clear()
        self.plans.forget()

    def drop(self, query: Query) -> None:
        """Forget a query."""
        if self.queries.get(query.key) is query:
            del self.queries[query.key]

    def take_remarks(self) -> list[Remark]:
        """Return what should be logged about the decisions since the last call."""
        remarks, self._remarks = self._remarks, []
        return [*self.plans.take_remarks(), *remarks]

    def take_new(self) -> list[Query]:
        """Return the queries made since the last call, which must be started."""
        new, self._new = self._new, []
        return new

    def last_successes(self) -> dict[str, float]:
        """Return, by rule id, the Unix seconds of the newest evaluation behind a reading of the rule."""
        newest: dict[str, float] = {}
        for query in self.queries.values():
            if query.reading is not None:
                rule_id = query.metric.rule.label_value
                newest[rule_id] = max(query.reading.evaluated.wall, newest.get(rule_id, 0.0))
        return newest

    def backends(self) -> frozenset[Backend | None]:
        """Return the backends that queries are sent to; None stands for the Prometheus of the flags."""
        return frozenset(query.key.backend for query in self.queries.values())

    def groups(self) -> list[QueryGroup]:
        """Return all groups with requests."""
        return list(self._groups.values())

    def _bind(self, metric: Metric, request: DemandedRequest, now: float, former: Query | None) -> QueryScope:
        group, labels = self._group_of(metric, request), request.row_labels
        if is_new := group.key not in self._groups:
            self.plans.use(metric, labels)
        group.asking[request.namespace] += 1
        try:
            self._adjust(group, request.selector, now)
            scope = group.scopes.get(request.namespace) or self._scope(group, request, now)
        except RenderError:
            group.leave(request.namespace, None)
            if is_new:
                self.plans.release(metric, labels)
            raise
        self._groups[group.key] = group
        scope.wanted.bound_at = now
        if former is None or scope.query.reading is not None:
            return scope
        if scope.wanted.kind is PlanKind.EXACT:
            scope.query = former
            scope.aim(scope.wanted)
            return scope
        # The query that answered this request may lack the answers of others, so it cannot be put into a shared scope.
        private = QueryScope(group, former, scope.wanted, private=True)
        private.aim(scope.wanted)
        return private

    def _scope(self, group: QueryGroup, request: DemandedRequest, now: float) -> QueryScope:
        namespace = request.namespace
        kind = group.kind_in(namespace)
        query = self._query(kind, group, request, now)
        query.rationed = kind is not group.wanted_kind(self._namespace_limit(group))
        scope = QueryScope(group, query, query)
        if kind is PlanKind.EXACT:
            group.apart.setdefault(namespace, set()).add(scope)
        else:
            group.scopes[namespace] = scope
        return scope

    def _group_of(self, metric: Metric, request: DemandedRequest) -> QueryGroup:
        """Return the group of the request; a new one is not entered yet."""
        shared = request.selector.keys if request.which is None else request.selector
        key = (*identity_of(metric), shared)
        group = self._groups.get(key)
        if group is None:
            refused = set(_WIDER) if self.plans.distrusts(metric) else set[PlanKind]()
            group = QueryGroup(key, metric, self.plans.plan(metric, request.row_labels), refused)
        group.metric = metric
        return group

    def _adjust(self, group: QueryGroup, selector: Selector, now: float) -> None:
        """Change to the best plan. Scopes keep their answers until the new queries have answers."""
        kind = group.best_kind(self._namespace_limit(group))
        if kind is group.kind:
            return
        if kind is PlanKind.EXACT:
            group.retire(list(group.scopes))
        requests = [DemandedRequest(group.metric.qualified, namespace, None, selector) for namespace in group.scopes]
        try:
            queries = [self._query(kind, group, request, now) for request in requests]
        except RenderError as error:
            text = f"{group.metric.qualified} has no {kind} query: {error}"
            self._remarks.append(Remark(logging.WARNING, text))
            group.refused |= {kind, PlanKind.WIDE}
            self._adjust(group, selector, now)
            return
        group.kind = kind
        rationed = kind is not group.wanted_kind(self._namespace_limit(group))
        for request, query in zip(requests, queries, strict=True):
            query.rationed = rationed
            group.scopes[request.namespace].aim(query)

    def _namespace_limit(self, group: QueryGroup) -> int:
        """Return the largest number of namespaces that are queried separately.

        It is 0 for the usage of pods: clients list the pods of all namespaces, and so, together, do the autoscalers.
        """
        return 0 if group.metric.rule.api is Api.RESOURCE else self._settings.namespace_plan_limit

    def _query(self, kind: PlanKind, group: QueryGroup, request: DemandedRequest, now: float) -> Query:
        metric = group.metric
        key = query_key(kind, metric, request)
        query = self.queries.get(key)
        if query is None:
            query = self.queries[key] = Query(key, metric, request.selector, longest_period(metric, self._settings))
            self._new.append(query)
        query.metric = metric
        # Not shortened by a reload, during which the other rules are not bound yet; each answer keeps to its own rule.
        query.hold_silent_seconds = max(query.hold_silent_seconds, metric.rule.policy.hold_silent_seconds)
        query.index_by(request.selector)
        query.groups.add(group)
        if kind is PlanKind.EXACT:
            query.payers.add(request.namespace)
        query.bound_at = now
        return query


def query_key(
    kind: PlanKind, metric: Metric, request: DemandedRequest, names: tuple[str, ...] | None = None
) -> QueryKey:
    """Return the key of the query that a plan sends for a request. Raises RenderError.

    `names` are the objects to ask for; without them, those that a selector picks are filled in with each refresh.
    """
    which = request.which
    picked = which if names is None and kind is PlanKind.EXACT and isinstance(which, BySelector) else None
    if names is None:
        names = () if metric.resource is None else (which.name,) if isinstance(which, ByName) else (_ANY_NAME,)
    planned, times = planned_with_times(metric, Asked(request.namespace, names, request.selector), kind)
    return QueryKey(
        planned,
        request.namespace if kind is not PlanKind.WIDE and metric.namespace_label else None,
        metric.namespace_label,
        picked,
        metric.resource if picked else None,
        times,
        metric.rule.backend,
    )
