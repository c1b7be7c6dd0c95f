"""Describes what a serving process has in memory about a metric, for explanations.

Only the state that concerns one namespace is reported. A wide query serves many namespaces, so what Prometheus said
about its failure is not repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.reports.counts import count_of
from adapter.foundation.time.timestamps import rfc3339
from adapter.metrics.readings.answers import ByName
from adapter.metrics.readings.explain.explanation import ExplanationStep, Outcome, Question
from adapter.metrics.readings.explain.rules import unnamed_usage, usage_metrics_named
from adapter.metrics.readings.public_reasons import reason_for_requesters
from adapter.metrics.rulebook.model import Api, Metric
from adapter.metrics.rulebook.objects.rule_object_verdict import KnownObject, verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from adapter.foundation.time.clock import Clock
    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.asking.demand import DemandedRequest, DemandEntry
    from adapter.metrics.readings.asking.queries import Query
    from adapter.metrics.readings.catalogue.catalogue import Catalogue
    from adapter.metrics.readings.catalogue.last_look_up import LookUp

_ENTRIES_A_SLICE = 1000


def serves(catalogue: Catalogue, question: Question) -> bool:
    """Return whether a metric of the question's name is served for the kind in the question, or else for any kind."""
    resource, name = question.resource, question.name
    if question.api is Api.RESOURCE:
        return bool(usage_metrics_named(catalogue.resource, question))
    is_external = question.api in {None, Api.EXTERNAL} and resource is None
    if is_external and catalogue.find_external(name) is not None:
        return True
    if resource is None:
        return question.api is not Api.EXTERNAL and any(metric.name == name for metric in catalogue.custom)
    return catalogue.find_custom(resource.qualified, resource.namespaced, name) is not None


def refused_objects(known: Iterable[KnownObject]) -> Iterator[ExplanationStep]:
    """Yield why MetricRule objects of the requested namespace are not served."""
    for each in known:
        verdict = verdict_of(each)
        if verdict.refusal is not None:
            detail = f"{each.found.content.shown} is refused: {verdict.refusal.message}"
            yield ExplanationStep("rules", Outcome.INFO, detail)


@dataclass(frozen=True, slots=True)
class ServedMemory:
    """The memory of a process at one moment."""

    catalogue: Catalogue
    look_ups: Sequence[LookUp]
    entries: Sequence[DemandEntry]
    clock: Clock
    pace: Pace

    def metrics(self, question: Question) -> Sequence[Metric]:
        """Return the metrics that are served under the name: that of the named kind, or the external one."""
        resource = question.resource
        if question.api is Api.RESOURCE:
            return usage_metrics_named(self.catalogue.resource, question)
        if resource is None:
            found = None if question.api is Api.CUSTOM else self.catalogue.find_external(question.name)
        else:
            found = self.catalogue.find_custom(resource.qualified, resource.namespaced, question.name)
        return unnamed_usage(self.catalogue.resource, question) if found is None else (found,)

    def steps(self, metric: Metric, question: Question) -> Iterator[ExplanationStep]:
        """Yield when the metric's series were looked up, and what is in memory for its requests."""
        yield from self._look_up_steps(metric)
        entries = [entry for entry in self._demand_entries(metric) if _is_meant(entry.request, metric, question)]
        if not entries:
            text = "this process has no recent request for it, so nothing is in memory"
            yield ExplanationStep("memory", Outcome.INFO, text)
            return
        now = self.clock.monotonic()
        last = min(now - entry.arrivals.last for entry in entries)
        text = f"{count_of(len(entries), 'different request')}, the last {last:.0f} s ago"
        yield ExplanationStep("memory", Outcome.INFO, text)
        for query in {entry.scope.query for entry in entries}:
            yield self._query_step(query)

    def _demand_entries(self, metric: Metric) -> Iterable[DemandEntry]:
        for entries in self.pace.slices(self.entries, _ENTRIES_A_SLICE):
            for entry in entries:
                if entry.metric.qualified == metric.qualified and entry.metric.rule.api is metric.rule.api:
                    yield entry

    def _look_up_steps(self, metric: Metric) -> Iterator[ExplanationStep]:
        now = self.clock.wall()
        for look_up in self.look_ups:
            if look_up.rule is not metric.rule:
                continue
            if look_up.failure is not None:
                text = f"the last look-up of its series failed: {look_up.failure}; the one before that succeeded: "
                yield ExplanationStep("series", Outcome.ERROR, text + _time_with_age(look_up.succeeded_at, now))
            elif look_up.succeeded_at is not None:
                yield ExplanationStep(
                    "series", Outcome.OK, f"its series were looked up {_time_with_age(look_up.succeeded_at, now)}"
                )
            elif look_up.rule.series_query:
                yield ExplanationStep("series", Outcome.INFO, "its series have not been looked up yet")

    def _query_step(self, query: Query) -> ExplanationStep:
        """Return the state of a query that is refreshed."""
        reading, failure = query.reading, query.failure
        text = f"queried by the {query.kind} plan every {query.period:g} s; "
        if reading is None:
            text += "no answer yet"
        else:
            age = reading.evaluated.age(self.clock.wall(), self.clock.monotonic())
            text += f"the answer in memory is {age:.0f} s old"
        if failure is None:
            return ExplanationStep("memory", Outcome.INFO if reading is None else Outcome.OK, text)
        reason = reason_for_requesters(failure, query.kind)
        return ExplanationStep("memory", Outcome.ERROR, f"{text}; the last refresh failed: {reason}")


def _is_meant(request: DemandedRequest, metric: Metric, question: Question) -> bool:
    """Return whether the request is one of the question's namespace."""
    if metric.resource is not None and metric.resource.qualified == "namespaces" and question.object is not None:
        return request.which == ByName(question.object)
    return request.namespace == _place(metric, question.namespace)


def _place(metric: Metric, namespace: str | None) -> str | None:
    """Return the namespace under which requests for the metric are stored; `*` for an external metric without one."""
    if metric.resource is None:
        return namespace or "*"
    return namespace if metric.namespaced else None


def _time_with_age(at: float | None, now: float) -> str:
    """Return Unix seconds as a moment that people can find in a log, and how long ago that is."""
    if at is None:
        return "never"
    return f"at {rfc3339(at)}, {max(0.0, now - at):.0f} s ago"
