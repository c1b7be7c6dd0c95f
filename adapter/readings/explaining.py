"""Finds out why a metric has, or lacks, a value, by taking the steps of an answer one by one, and saying each.

Values are asked of Prometheus anew: who explains must not believe what is in memory. A running process knows which rule
makes the metric, and tells beside that what it remembers; by itself a command looks the series up. Each query has a
deadline, and so has the whole, so an explanation ends whatever Prometheus does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from adapter.objects.selectors import EVERYTHING
from adapter.readings.explained_policies import Steady, standing_in, without_aged
from adapter.readings.explained_rules import RuleSearch, chosen, note_refused
from adapter.readings.explained_values import of_namespace, told_of_containers, told_of_objects, told_of_rows
from adapter.readings.explained_way import PATIENT, Answered, Way, count, shown
from adapter.readings.explanation import Explanation, Outcome, Verdict
from adapter.readings.notices import without_series
from adapter.readings.samples import SampleAges
from adapter.rulebook.model import Api, PlanKind
from adapter.rulebook.plans import plan_of, planned_query
from adapter.rulebook.plans.sample_age import times_of
from adapter.rulebook.render import RenderError
from adapter.rulebook.requests import Asked
from adapter.sources.objects import ObjectsError
from adapter.sources.prometheus.errors import (
    AnswerTooLargeError,
    PrometheusError,
    PrometheusTimeoutError,
    QueryRefusedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adapter.objects.resources import ResolveResource, Resource
    from adapter.readings.explained_values import Told
    from adapter.readings.explained_way import Patience
    from adapter.readings.explanation import Question, Step
    from adapter.readings.refresher import Prometheus
    from adapter.readings.settings import Clock, ReadingSettings
    from adapter.rulebook.model import Metric, Plan, Rulebook
    from adapter.rulebook.requests import PlannedQuery
    from adapter.sources.objects import ObjectSource
    from adapter.sources.pace import Pace
    from adapter.sources.prometheus.decoding import Sample


_LOOK_AT_NAMES = "look whether it runs, and whether its name and the namespace are right"
_LISTED = (
    "a value is not all that it takes: the API leaves out who lacks CPU or memory, and a pod while one of its "
    "containers has no CPU or no value of what it has samples of; ask about cpu and memory"
)
"""What is told of one resource says nothing of the other, and clients would read what is missing as 0."""


class Memory(Protocol):
    """What a process that serves knows already."""

    def metrics(self, question: Question) -> Sequence[Metric]:
        """Return the metrics that are served under the name, those that come later in the files last."""
        ...

    def steps(self, metric: Metric, namespace: str | None) -> Iterable[Step]:
        """Return what is remembered of the metric, for one namespace."""
        ...


class Explainer:
    """Answers questions; safe to call from any thread."""

    def __init__(  # noqa: PLR0913 - the parts that it stands on, each named by its caller
        self,
        *,
        prometheus: Prometheus,
        objects: ObjectSource | None,
        resolve: ResolveResource,
        settings: ReadingSettings,
        clock: Clock,
        pace: Pace,
        patience: Patience = PATIENT,
        steady_seconds: Callable[[], float | None] = lambda: None,
    ) -> None:
        """`objects` is None where no cluster is at hand: then it cannot be said which objects lack a sample.

        `steady_seconds` tells for how long Prometheus has been there; None: it is not known.
        """
        self._steady_seconds = steady_seconds
        self._look_back = settings.look_back_seconds
        self._prometheus = prometheus
        self._objects = objects
        self._clock = clock
        self._pace = pace
        self._patience = patience
        self._search = RuleSearch(prometheus=prometheus, resolve=resolve, settings=settings, clock=clock, pace=pace)

    def explain(
        self, question: Question, rulebook: Rulebook, notes: Iterable[Step] = (), memory: Memory | None = None
    ) -> Explanation:
        """Return why; never raises for anything that Prometheus or the cluster does.

        `notes` are steps that whoever asks knows already, such as who asked for the metric last. With `memory` the
        rule is known without asking, and what is remembered is told.
        """
        way = Way(question, self._patience, self._clock.monotonic, to_owner=memory is None)
        try:
            metric = self._metric(way, rulebook, notes, memory)
            self._values(way, metric)
            verdict, cause, fix = Verdict.VALUE, f"{count(len(way.values), 'value')} found", ""
        except Answered as answered:
            verdict, cause, fix = answered.verdict, answered.cause, answered.fix
        return Explanation(
            metric=shown(question),
            namespace=question.namespace,
            object=None if question.object is None else f"{_kind(question)}/{question.object}",
            verdict=verdict,
            cause=cause,
            fix=fix,
            rule=way.rule,
            query=way.query,
            steps=tuple(way.steps),
            values=way.values,
        )

    def _metric(self, way: Way, rulebook: Rulebook, notes: Iterable[Step], memory: Memory | None) -> Metric:
        """Return the metric that is meant; raises Answered where no rule makes it."""
        note_refused(way, rulebook)
        known = list(memory.metrics(way.question)) if memory else []
        try:
            metric = chosen(way, known) if known else self._search.metric(way, rulebook)
        finally:
            way.steps.extend(notes)
        if memory:
            way.steps.extend(memory.steps(metric, way.question.namespace))
        return metric

    def _values(self, way: Way, metric: Metric) -> None:
        """Fill in the values; raises Answered where there are none."""
        names = self._names(way, metric)
        if metric.rule.api is Api.RESOURCE:
            way.note("listed", Outcome.INFO, _LISTED)
        plan = plan_of(metric, way.question.selector.keys if metric.resource is None else frozenset())
        planned = _planned(way, metric, names, plan)
        way.query = planned.text
        samples = self._asked(way, planned.text)
        own, _ = of_namespace(samples, metric.namespace_label, _namespace(way, metric))
        times, now = self._times(way, metric, names, planned.kind), float(math.floor(self._clock.wall()))
        standing = () if way.absent else names
        steady = Steady(self._steady_seconds(), self._look_back)
        way.values, steps = standing_in(metric, own, standing, times, now, steady)
        way.steps.extend(steps)
        if way.values:
            return
        if not samples:
            if way.absent:
                raise Answered(Verdict.NO_VALUE, way.absent, _LOOK_AT_NAMES)
            cause = f"Prometheus has no sample for {shown(way.question)} now"
            raise Answered(Verdict.NO_VALUE, cause, "ask Prometheus the query; look whether its targets are up")
        told = without_aged(metric, _told(way, metric, samples, names, plan), times, now)
        way.steps.extend(told.steps)
        if not told.values:
            raise Answered(Verdict.NO_VALUE, told.cause, told.fix)
        ages = SampleAges.asked(
            self._prometheus, metric, names, way.question, self._clock, self._pace, way.seconds_to_ask()
        )
        label = metric.object_label
        way.values = tuple(ages.of(name, None if label is None else name, value) for name, value in told.values)

    def _times(self, way: Way, metric: Metric, names: tuple[str, ...] | None, kind: PlanKind) -> list[Sample]:
        """Return the times of the samples behind the values; none where the rule does not limit their age."""
        times = times_of(metric)
        if times is None:
            return []
        asked = Asked(_namespace(way, metric), names or (), way.question.selector)
        way.note("query", Outcome.INFO, "the times of its samples are asked for, since the rule limits their age")
        return self._asked(way, planned_query(times, asked, kind).text)

    def _asked(self, way: Way, query: str) -> list[Sample]:
        """Return the samples that are there now; raises Answered where they cannot be had."""
        try:
            left = way.seconds_to_ask()
            if left <= 0:
                raise PrometheusTimeoutError(query, f"not asked any more after {way.patience.total:g} s")
            answer = self._prometheus.instant(query, timeout_seconds=left, at=float(math.floor(self._clock.wall())))
            samples = [sample for batch in answer.batches(self._pace) for sample in batch]
        except PrometheusError as error:
            raise way.end("query", Verdict.ERROR, way.reason(error), _repair(error)) from error
        way.note("query", Outcome.OK if samples else Outcome.NO, f"{count(len(samples), 'sample')} came")
        for warning in answer.warnings:
            told = warning if way.to_owner else without_series(warning)
            way.note("query", Outcome.INFO, f"Prometheus warns: {told}")
        return samples

    def _names(self, way: Way, metric: Metric) -> tuple[str, ...] | None:
        """Return the objects that should have a value; None where that is not known."""
        if metric.resource is None:
            return ()
        namespace = _namespace(way, metric)
        if way.question.object is not None:
            self._look_for(way, metric.resource, namespace, way.question.object)
            return (way.question.object,)
        if self._objects is None:
            return None
        try:
            names = tuple(self._objects.names(metric.resource, namespace, EVERYTHING))
        except ObjectsError as error:
            way.note("objects", Outcome.ERROR, str(error))
            return None
        told = f"{len(names)} {metric.resource.qualified}{f' in {namespace}' if namespace else ''}"
        way.note("objects", Outcome.OK if names else Outcome.NO, told)
        return names

    def _look_for(self, way: Way, resource: Resource, namespace: str | None, name: str) -> None:
        """Note whether the object is there. It is asked about either way: the API answers of what is gone, too."""
        if self._objects is None:
            return
        what = f"{resource.qualified}/{name}{f' in {namespace}' if namespace else ''}"
        try:
            if self._objects.labels_of(resource, namespace, name) is None:
                way.absent = f"there is no {what}"
                way.note("objects", Outcome.NO, way.absent)
            else:
                way.note("objects", Outcome.OK, f"{what} is there")
        except ObjectsError as error:
            way.note("objects", Outcome.ERROR, str(error))


def _repair(error: PrometheusError) -> str:
    """Return what to do about a query without an answer."""
    if isinstance(error, QueryRefusedError):
        return "change the rule's metricsQuery so that Prometheus can answer it"
    if isinstance(error, PrometheusTimeoutError | AnswerTooLargeError):
        return "make the query cheaper, as by a recording rule"
    return "look whether Prometheus runs, and at its address and credentials"


def _planned(way: Way, metric: Metric, names: tuple[str, ...] | None, plan: Plan) -> PlannedQuery:
    """Return the query to send: for the objects where they are few and known, else for all of the namespace."""
    why = "" if plan.kind is PlanKind.WIDE else f": {plan.reason}"
    way.note("plan", Outcome.INFO, f"the widest that is proven is {plan.kind}{why}")
    namespace = _namespace(way, metric)
    exact = metric.resource is None or way.question.object is not None or PlanKind.NAMESPACE not in plan.proven
    if metric.namespaced and metric.namespace_label is not None and namespace is None:
        raise way.end("query", Verdict.ERROR, "the metric is namespaced, and no namespace is given", "give one")
    if exact and metric.resource is not None and not names:
        if names is not None:
            cause = f"there are no {metric.resource.qualified}{f' in {namespace}' if namespace else ''}"
            raise way.end("query", Verdict.NO_VALUE, cause, "look whether they run, and whether the namespace is right")
        cause = f"which {metric.resource.qualified} there are is not known, and their metric is asked by name"
        raise way.end("query", Verdict.ERROR, cause, "name one of them")
    asked = Asked(namespace, names or (), way.question.selector)
    try:
        return planned_query(metric, asked, PlanKind.EXACT if exact else PlanKind.NAMESPACE)
    except RenderError as error:
        raise way.end("query", Verdict.ERROR, str(error), "ask otherwise, or change the rule") from error


def _told(way: Way, metric: Metric, samples: Sequence[Sample], names: tuple[str, ...] | None, plan: Plan) -> Told:
    """Return whose the samples are. Of other namespaces nothing is told, whatever the query lets through."""
    own, left_out = of_namespace(samples, metric.namespace_label, _namespace(way, metric))
    way.steps.extend(left_out)
    if not own:
        cause = "all samples that came are of other namespaces"
        raise Answered(Verdict.NO_VALUE, cause, "use <<.LabelMatchers>> in the rule's metricsQuery")
    if metric.object_label is None:
        return told_of_rows(own)
    # Who asks about one object may not know the others, and a query that restricts nothing lets all namespaces' in.
    own_alone = not metric.namespaced or PlanKind.NAMESPACE in plan.proven
    tell = own_alone and way.question.object is None
    if metric.container_label is not None:
        return told_of_containers(metric.object_label, metric.container_label, own, names, tell_strangers=tell)
    lowest = 0.0 if metric.rule.api is Api.RESOURCE else -math.inf
    return told_of_objects(metric.object_label, own, names, tell_strangers=tell, lowest=lowest)


def _namespace(way: Way, metric: Metric) -> str | None:
    """Return the namespace of the question; None for objects that are in none."""
    return way.question.namespace if metric.namespaced else None


def _kind(question: Question) -> str:
    return question.resource.qualified if question.resource else "object"
