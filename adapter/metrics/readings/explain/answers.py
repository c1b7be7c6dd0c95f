"""The steps from a metric to its answer, taken as for a request, for one explanation.

The queries are those that a request would wait for, sent now (`fresh_queries`). `Refresher` makes readings from their
results, and `MetricAnswers` and `UsageAnswers` make answers from these, as for the API. This module notes each step.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, cast

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.reports.counts import agreeing, count_of
from adapter.foundation.sources.objects import ObjectsError, ObjectsNotSyncedError
from adapter.metrics.readings.answering.metric_answers import MetricAnswers
from adapter.metrics.readings.answering.usage_answers import UsageAnswers
from adapter.metrics.readings.answers import ByName, BySelector, UsageAnswer
from adapter.metrics.readings.asking.demand import DemandedRequest, DemandEntry
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.readings.errors import NoObjectsMatchError, ReadingError
from adapter.metrics.readings.explain.explanation import ExplainedValue, ExplanationVerdict, Outcome
from adapter.metrics.readings.explain.explanation_progress import Answered, Progress, name_in_question
from adapter.metrics.readings.explain.fresh_queries import FreshQueries, SeenObjects
from adapter.metrics.readings.explain.sample_ages import SampleAges
from adapter.metrics.readings.explain.values import (
    NO_SAMPLE,
    names_in,
    steps_of_dropped_samples,
    steps_of_objects,
    steps_of_rows,
)
from adapter.metrics.readings.samples.no_data_and_sample_age import STANDS_IN
from adapter.metrics.readings.samples.object_reading_builder import OF_ANOTHER_TIME
from adapter.metrics.readings.samples.series import as_series
from adapter.metrics.rulebook.model import Api, Metric, PlanKind, ResourceRules

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from adapter.foundation.objects.resources import Resource
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.readings.samples.external_reading import ExternalReading
    from adapter.metrics.readings.samples.object_reading import ObjectReading

_ALL = BySelector(EVERYTHING)
_MOST_LOOKED_INTO = 10
_LOOK_AT_TARGETS = "run the query in Prometheus, and check whether its targets are up and still export the metric"
_PLAN_TEXTS: Final = {
    PlanKind.WIDE: "one query serves all requesters",
    PlanKind.NAMESPACE: "one query serves the requesters of a namespace",
    PlanKind.EXACT: "each requester needs a query of its own",
}
_LISTED = (
    "the API only lists objects with values of CPU and memory: it leaves out a pod while one of its "
    "containers has no CPU or no value of what it has samples of"
)
"""The API omits other objects because clients would read a missing value as 0."""


class AnswerSteps:
    """Takes the steps for one metric. Raises Answered if there is no value, and the ReadingErrors of the API."""

    def __init__(self, sources: ReadingSources, progress: Progress, metric: Metric) -> None:
        self._sources = sources
        self._source = sources.backends.of(metric.rule.backend)
        self._progress = progress
        self._metric = metric
        self._namespace = progress.question.namespace if metric.namespaced else None
        self._seen = sources.objects if isinstance(sources.objects, SeenObjects) else None
        """The objects that samples name, if there is no cluster to list them."""
        self._queries = queries = FreshQueries(sources, progress, metric)
        self._answering = MetricAnswers(sources, queries.count_dropped_samples)
        self._usage = UsageAnswers(sources, queries, queries.current)

    def take(self, rules: ResourceRules) -> None:
        """Take the steps for the values."""
        metric = self._metric
        if metric.namespaced and metric.namespace_label is not None and self._namespace is None:
            raise self._progress.end(
                "query",
                ExplanationVerdict.ERROR,
                "the metric is namespaced, and no namespace is given",
                "set --namespace",
            )
        if metric.resource is None:
            self._take_external()
        elif metric.rule.api is Api.RESOURCE:
            self._take_usage(metric.resource, rules)
        else:
            self._take_objects(metric.resource)

    def _take_objects(self, resource: Resource) -> None:
        progress, metric, namespace = self._progress, self._metric, self._namespace
        which = self._which()
        known = self._names(resource, which)
        entry = self._entry(which)
        if known is None and entry.scope.query.key.which is not None:
            cause = f"which {resource.qualified} exist is not known, and their metric is queried by name"
            raise progress.end("query", ExplanationVerdict.ERROR, cause, "name one of them")
        reading = cast("ObjectReading", self._queries.current(entry))
        came = names_in(reading, namespace)
        names = self._see(came) if known is None else known
        self._note_came(count_of(len(came), "object") if came else "")
        served: tuple[tuple[str, float], ...] = ()
        try:
            answer = self._answering.objects(metric, namespace, which, names, reading)
            served = answer.values
        finally:
            steps = steps_of_objects(
                reading,
                namespace,
                names,
                dict(served),
                limit_seconds=metric.rule.policy.max_sample_age_seconds,
                name_others=self._may_name_others(entry),
            )
            progress.steps.extend((*steps, *steps_of_dropped_samples(self._queries.dropped_samples)))
        self._serve(served, answer.warnings)

    def _take_external(self) -> None:
        metric = self._metric
        namespace, selector = self._namespace or "*", self._progress.question.selector
        entry = self._entry(None, namespace)
        reading = cast("ExternalReading", self._queries.current(entry))
        rows = reading.rows(namespace, selector)
        self._note_came(count_of(len(rows), "row") if rows else "")
        note = OF_ANOTHER_TIME if reading.is_late(namespace, selector) else None
        self._progress.steps.extend(
            (*steps_of_rows(rows, note), *steps_of_dropped_samples(self._queries.dropped_samples))
        )
        answer = self._answering.external(metric, namespace, selector, reading)
        values = tuple((as_series(row.labels), row.value) for row in answer.rows)
        self._serve(values, answer.warnings)

    def _take_usage(self, kind: Resource, rules: ResourceRules) -> None:
        progress, metric, which = self._progress, self._metric, self._which()
        known = self._names(kind, which)
        progress.note("listed", Outcome.INFO, _LISTED)
        entry = self._entry(_ALL)
        catalogue = Catalogue(resource=rules)
        names = self._see(self._seen_of(catalogue.usage_of(kind))) if known is None else known
        answer = self._usage.answer(catalogue, kind, self._namespace, which)
        if (failure := entry.scope.query.failure) is not None:
            raise failure.to_error()
        listing = {item.name for item in answer.items}
        left_out = [name for name in names if name not in listing]
        self._note_came(count_of(len(listing | set(left_out)), "object") if listing else "")
        self._say_why(catalogue, kind, left_out)
        progress.steps.extend(steps_of_dropped_samples(self._queries.dropped_samples))
        self._serve(_usage_values(answer, metric.name), answer.warnings)

    def _say_why(self, catalogue: Catalogue, kind: Resource, left_out: list[str]) -> None:
        """Note why objects are not listed, in the words of the API for a request for one of them."""
        for name in left_out[:_MOST_LOOKED_INTO]:
            try:
                self._usage.answer(catalogue, kind, self._namespace, ByName(name))
            except ReadingError as error:
                self._progress.note("values", Outcome.NO, f"{name} is left out: {error.public_message}")
        if more := left_out[_MOST_LOOKED_INTO:]:
            self._progress.note("values", Outcome.NO, f"{len(more)} more {agreeing(len(more), 'is', 'are')} left out")

    def _seen_of(self, metrics: Iterable[Metric]) -> Iterable[str]:
        """Return the objects that these metrics' samples name, if there is no other source of objects."""
        for metric in metrics:
            request = DemandedRequest(metric.qualified, self._namespace, _ALL, EVERYTHING)
            try:
                reading = cast("ObjectReading", self._queries.current(self._queries.entry(metric, request)))
            except ReadingError:
                # The answer reports it.
                continue
            yield from names_in(reading, self._namespace)

    def _see(self, names: Iterable[str]) -> list[str]:
        """Assume that the objects of the samples exist; return their names, ascending."""
        seen = sorted(set(names))
        if self._seen is not None:
            self._seen.seen = seen
        return seen

    def _serve(self, values: tuple[tuple[str, float], ...], warnings: Iterable[str]) -> None:
        """Take the values, with the ages of their samples. Raises Answered if there are none."""
        progress, metric = self._progress, self._metric
        stands_in = STANDS_IN in warnings
        for warning in warnings:
            progress.note("onNoData" if warning == STANDS_IN else "values", Outcome.INFO, warning)
        if not values:
            raise self._answer_without_value()
        progress.note("values", Outcome.OK, f"{len(values)} with a value")
        if stands_in:
            if progress.to_owner and self._source.uptime.seconds_at(self._sources.clock.monotonic()) == math.inf:
                needed = self._sources.settings.look_back_seconds + metric.rule.ranges_seconds
                text = f"this holds once Prometheus has been up for {needed:g} s"
                progress.note("onNoData", Outcome.INFO, text)
            progress.values = tuple(ExplainedValue(name, value, None, None) for name, value in values)
            return
        names = [name for name, _ in values] if metric.object_label else ()
        ages = SampleAges.fetch(self._sources, progress, metric, names)
        progress.values = tuple(ages.of(name, name if metric.object_label else None, value) for name, value in values)

    def _answer_without_value(self) -> Answered:
        """Return the verdict that there is no value, and no error either, with the first reason that was found."""
        reasons = [step.detail for step in self._progress.steps if step.step == "values" and step.outcome is Outcome.NO]
        usable = [reason for reason in reasons if not reason.endswith(NO_SAMPLE)]
        if usable:
            return Answered(ExplanationVerdict.NO_VALUE, f"there is no usable sample: {usable[0]}", "")
        return Answered(
            ExplanationVerdict.NO_VALUE,
            f"Prometheus has no sample for {name_in_question(self._progress.question)} now",
            _LOOK_AT_TARGETS,
        )

    def _which(self) -> ByName | BySelector:
        name = self._progress.question.object
        return _ALL if name is None else ByName(name)

    def _entry(self, which: ByName | BySelector | None, namespace: str | None = None) -> DemandEntry:
        """Return the entry to query, and note the widest plan that is proven for it."""
        selector = self._progress.question.selector
        request = DemandedRequest(self._metric.qualified, namespace or self._namespace, which, selector)
        entry = self._queries.entry(self._metric, request)
        plan = entry.scope.group.plan
        why = "" if plan.kind is PlanKind.WIDE else f", because {plan.reason}"
        self._progress.note("plan", Outcome.INFO, f"{plan.kind}: {_PLAN_TEXTS[plan.kind]}{why}")
        return entry

    def _may_name_others(self, entry: DemandEntry) -> bool:
        """Return whether objects that nobody asked about may be named.

        A client that asks about one object may not be allowed to know others, and an unrestricted query returns those
        of all namespaces.
        """
        own_alone = not self._metric.namespaced or PlanKind.NAMESPACE in entry.scope.group.plan.proven
        return own_alone and self._progress.question.object is None

    def _note_came(self, what: str) -> None:
        text = (
            f"Prometheus returned samples of {what}" if what else "Prometheus returned no sample that could be a value"
        )
        self._progress.note("query", Outcome.OK if what else Outcome.NO, text)

    def _names(self, resource: Resource, which: ByName | BySelector) -> Collection[str] | None:
        """Return the objects that should have a value; None if no cluster is available. Raises ReadingError."""
        progress, namespace = self._progress, self._namespace
        where = f" in {namespace}" if namespace else ""
        self._await_first_list(resource)
        if isinstance(which, ByName):
            self._look_for(f"{resource.qualified}/{which.name}{where}", resource, which.name)
        elif self._seen is not None:
            return None
        try:
            names = self._answering.names(self._metric, namespace, which)
        except NoObjectsMatchError as error:
            cause = f"there are no {resource.qualified}{where}"
            fix = "check whether they run, and whether the namespace is right"
            raise progress.end("objects", ExplanationVerdict.NO_VALUE, cause, fix) from error
        if not isinstance(which, ByName):
            progress.note("objects", Outcome.OK, f"{len(names)} {resource.qualified}{where}")
        return names

    def _await_first_list(self, resource: Resource) -> None:
        """Wait until the objects are listed, as long as a query may take: their watch may begin with this question."""
        objects = self._sources.objects
        try:
            objects.names(resource, self._namespace, EVERYTHING)
        except ObjectsNotSyncedError:
            objects.await_first_list(resource, max(0.0, self._progress.seconds_to_ask()))
        except ObjectsError:
            pass  # The next step reports it.

    def _look_for(self, what: str, resource: Resource, name: str) -> None:
        """Note whether the object exists. The steps continue either way: the API also answers for deleted objects."""
        if self._seen is not None:
            return
        try:
            if self._sources.objects.labels_of(resource, self._namespace, name) is None:
                self._progress.absent = f"there is no {what}"
                self._progress.note("objects", Outcome.NO, self._progress.absent)
            else:
                self._progress.note("objects", Outcome.OK, f"{what} is there")
        except ObjectsError as error:
            self._progress.note("objects", Outcome.ERROR, str(error))


def _usage_values(answer: UsageAnswer, resource: str) -> tuple[tuple[str, float], ...]:
    """Return the usage of one resource by `POD/CONTAINER`, or by node."""
    return tuple(
        (f"{item.name}/{container}" if container else item.name, used[resource])
        for item in answer.items
        for container, used in item.used.items()
        if resource in used
    )
