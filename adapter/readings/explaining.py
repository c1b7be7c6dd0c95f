"""Finds out why a metric has, or lacks, a value, by taking the steps of an answer one by one, and saying each.

Everything is asked of Prometheus anew: who explains must not believe what is in memory. Each query has a deadline, and
all look-ups of series together have one, so an explanation ends within a minute whatever Prometheus does.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.objects.selectors import EVERYTHING
from adapter.readings.discovery import what_is_missing
from adapter.readings.explained_values import told_of_objects, told_of_rows
from adapter.readings.explanation import ExplainedValue, Explanation, Outcome, Question, Step, Verdict
from adapter.readings.samples import SampleAges
from adapter.rulebook.discover import SeriesShapes, static_metrics
from adapter.rulebook.lint.examples import distance_from_pods
from adapter.rulebook.model import Api, PlanKind
from adapter.rulebook.plans import plan_of, planned_query
from adapter.rulebook.render import RenderError
from adapter.rulebook.requests import Asked
from adapter.rulebook.tracing import Trace, Wanted, api_names, traces
from adapter.sources.objects import ObjectsError
from adapter.sources.prometheus.errors import PrometheusError, PrometheusTimeoutError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adapter.objects.resources import ResolveResource
    from adapter.readings.refresher import Prometheus
    from adapter.readings.settings import Clock, ReadingSettings
    from adapter.rulebook.model import Metric, Rule, Rulebook
    from adapter.rulebook.requests import PlannedQuery
    from adapter.sources.objects import ObjectSource
    from adapter.sources.pace import Pace

_DEADLINE_SECONDS = 10.0
_LOOK_UPS_SECONDS = 30.0
"""For the look-ups of all rules together."""


class _Answered(Exception):  # noqa: N818 - the end of the steps, good or bad
    """What the steps led to."""

    def __init__(self, verdict: Verdict, cause: str, fix: str) -> None:
        super().__init__(cause)
        self.verdict, self.cause, self.fix = verdict, cause, fix


@dataclass(slots=True)
class _Way:
    """What was found out so far."""

    question: Question
    look_ups_end: float
    """In monotonic seconds."""
    steps: list[Step] = field(default_factory=list)
    sees_all: bool = True
    """Whether all series came that the rules are about."""
    rule: str | None = None
    query: str | None = None
    values: tuple[ExplainedValue, ...] = ()

    def note(self, step: str, outcome: Outcome, detail: str) -> None:
        self.steps.append(Step(step, outcome, detail))

    def end(self, step: str, verdict: Verdict, cause: str, fix: str) -> _Answered:
        self.note(step, Outcome.ERROR if verdict is Verdict.ERROR else Outcome.NO, cause)
        return _Answered(verdict, cause, fix)


class Explainer:
    """Answers questions; safe to call from any thread."""

    def __init__(
        self,
        *,
        prometheus: Prometheus,
        objects: ObjectSource | None,
        resolve: ResolveResource,
        settings: ReadingSettings,
        clock: Clock,
        pace: Pace,
    ) -> None:
        """`objects` is None where no cluster is at hand: then it cannot be said which objects lack a sample."""
        self._prometheus = prometheus
        self._objects = objects
        self._resolve = resolve
        self._settings = settings
        self._clock = clock
        self._pace = pace

    def explain(self, question: Question, rulebook: Rulebook, notes: Iterable[Step] = ()) -> Explanation:
        """Return why; never raises for anything that Prometheus or the cluster does.

        `notes` are steps that whoever asks knows already, such as who asked for the metric last.
        """
        way = _Way(question, self._clock.monotonic() + _LOOK_UPS_SECONDS)
        try:
            metric = self._metric(way, rulebook)
            way.steps.extend(notes)
            self._values(way, metric)
            verdict, cause, fix = Verdict.VALUE, f"{_count(len(way.values), 'value')} found", ""
        except _Answered as answered:
            verdict, cause, fix = answered.verdict, answered.cause, answered.fix
        return Explanation(
            metric=_shown(question),
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

    def _metric(self, way: _Way, rulebook: Rulebook) -> Metric:
        """Return the metric that is meant: the one of the last rule that makes it."""
        question = way.question
        self._note_refused(way, rulebook)
        wanted = Wanted(question.name, question.resource.qualified if question.resource else None)
        looked_up: dict[str, SeriesShapes | PrometheusError] = {}
        found: list[Trace] = []
        names: set[str] = set()
        rules = tuple(_of_api(rulebook.rules, question))
        for rule in rules:
            shapes = self._shapes(way, rule, looked_up)
            if isinstance(shapes, PrometheusError):
                way.note("series", Outcome.ERROR, f"{_place(rule)}: its series cannot be looked up: {shapes}")
                way.sees_all = False
                continue
            found += traces(rule, shapes, wanted, self._resolve)
            names.update(api_names(rule, shapes))
        metrics = [trace.metric for trace in found if trace.metric] or list(self._static(rules, wanted))
        if not metrics:
            raise self._no_rule(way, found, names)
        # Nobody who names no kind means all: of the likeliest kind, the last rule in the files wins.
        metric = min(reversed(metrics), key=distance_from_pods)
        way.rule = metric.rule.id
        way.note("rule", Outcome.OK, f"{_place(metric.rule)} makes {metric.qualified} of the series {metric.series}")
        for other in {other.rule.id: other for other in metrics if other.rule is not metric.rule}.values():
            way.note("rule", Outcome.INFO, f"{_place(other.rule)} makes {_beside(other, metric)}")
        return metric

    def _static(self, rules: Iterable[Rule], wanted: Wanted) -> Iterator[Metric]:
        """Yield the metrics that rules spell out, whose series need not exist."""
        for rule in rules:
            metric = wanted.among(static_metrics(rule, self._resolve))
            if metric is not None:
                yield metric

    @staticmethod
    def _note_refused(way: _Way, rulebook: Rulebook) -> None:
        refused = {rule.id for rule in rulebook.refused}
        for finding in rulebook.findings:
            if finding.rule in refused and finding.severity.value == "error":
                way.note("rules", Outcome.INFO, f"{finding.rule} is refused and serves nothing: {finding}")
        way.note("rules", Outcome.OK, f"{_count(len(rulebook.rules), 'rule')} in force")

    def _shapes(
        self, way: _Way, rule: Rule, known: dict[str, SeriesShapes | PrometheusError]
    ) -> SeriesShapes | PrometheusError:
        if rule.series_query not in known:
            try:
                known[rule.series_query] = self._looked_up(way, rule)
            except PrometheusError as error:
                known[rule.series_query] = error
        return known[rule.series_query]

    def _looked_up(self, way: _Way, rule: Rule) -> SeriesShapes:
        """Return what Prometheus has for the rule; raises PrometheusError."""
        left = way.look_ups_end - self._clock.monotonic()
        if left <= 0:
            cause = f"not looked up any more: all before it took more than {_LOOK_UPS_SECONDS:g} s"
            raise PrometheusTimeoutError(rule.series_query, cause)
        shapes = SeriesShapes()
        start = self._clock.wall() - self._settings.metrics_max_age_seconds
        answer = self._prometheus.series(rule.series_query, start=start, timeout_seconds=min(left, _DEADLINE_SECONDS))
        for batch in answer.batches(self._pace):
            shapes.add(batch)
        if missing := what_is_missing(shapes, answer.warnings):
            way.note("series", Outcome.INFO, f"{_place(rule)}: only a part of its series came: {missing}")
            way.sees_all = False
        return shapes

    @staticmethod
    def _no_rule(way: _Way, found: list[Trace], names: set[str]) -> _Answered:
        for trace in found:
            way.note("rule", Outcome.NO, f"{_place(trace.rule)}: {trace.obstacle}")
        shown = _shown(way.question)
        if found:
            first = found[0]
            return _Answered(
                Verdict.NO_VALUE, f"no rule makes {shown}: {_place(first.rule)}: {first.obstacle}", "change that rule"
            )
        if not way.sees_all:
            fix = "see the steps for what Prometheus said"
            return way.end("rule", Verdict.ERROR, f"it cannot be told whether a rule makes {shown}", fix)
        near = difflib.get_close_matches(way.question.name, sorted(names), n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "look whether Prometheus has such a series at all"
        return way.end("rule", Verdict.NO_VALUE, f"no rule makes {shown} of the series that Prometheus has", hint)

    def _values(self, way: _Way, metric: Metric) -> None:
        """Fill in the values; raises _Answered where there are none."""
        names = self._names(way, metric)
        planned = self._planned(way, metric, names)
        way.query = planned.text
        try:
            answer = self._prometheus.instant(
                planned.text, timeout_seconds=_DEADLINE_SECONDS, at=float(math.floor(self._clock.wall()))
            )
            samples = [sample for batch in answer.batches(self._pace) for sample in batch]
        except PrometheusError as error:
            raise way.end("query", Verdict.ERROR, str(error), "see the query and the steps") from error
        way.note("query", Outcome.OK if samples else Outcome.NO, f"{_count(len(samples), 'sample')} came")
        for warning in answer.warnings:
            way.note("query", Outcome.INFO, f"Prometheus warns: {warning}")
        if not samples:
            cause = f"Prometheus has no sample for {_shown(way.question)} now"
            raise _Answered(Verdict.NO_VALUE, cause, "ask Prometheus the query; look whether its targets are up")
        ages = SampleAges.asked(self._prometheus, metric, names, way.question, self._clock, self._pace)
        label = metric.object_label
        told = told_of_rows(samples) if label is None else told_of_objects(label, samples, names)
        way.steps.extend(told.steps)
        if not told.values:
            raise _Answered(Verdict.NO_VALUE, told.cause, told.fix)
        way.values = tuple(ages.of(shown, None if label is None else shown, value) for shown, value in told.values)

    def _names(self, way: _Way, metric: Metric) -> tuple[str, ...] | None:
        """Return the objects that should have a value; None where that is not known."""
        question = way.question
        if metric.resource is None:
            return ()
        if question.object is not None:
            return (question.object,)
        if self._objects is None:
            return None
        try:
            names = tuple(self._objects.names(metric.resource, question.namespace, EVERYTHING))
        except ObjectsError as error:
            way.note("objects", Outcome.ERROR, str(error))
            return None
        where = f" in {question.namespace}" if question.namespace else ""
        way.note("objects", Outcome.OK if names else Outcome.NO, f"{len(names)} {metric.resource.qualified}{where}")
        return names

    def _planned(self, way: _Way, metric: Metric, names: tuple[str, ...] | None) -> PlannedQuery:
        """Return the query to send: for the objects where they are few and known, else for all of the namespace."""
        plan = plan_of(metric, way.question.selector.keys if metric.resource is None else frozenset())
        way.note("plan", Outcome.INFO, f"{plan.kind}: {plan.reason}")
        exact = metric.resource is None or way.question.object is not None or PlanKind.NAMESPACE not in plan.proven
        if metric.namespaced and metric.namespace_label is not None and way.question.namespace is None:
            raise way.end("query", Verdict.ERROR, "the metric is namespaced, and no namespace is given", "give one")
        if exact and metric.resource is not None and not names:
            cause = f"which {metric.resource.qualified} there are is not known, and their metric is asked by name"
            raise way.end("query", Verdict.ERROR, cause, "name one of them")
        asked = Asked(way.question.namespace, names or (), way.question.selector)
        try:
            return planned_query(metric, asked, PlanKind.EXACT if exact else PlanKind.NAMESPACE)
        except RenderError as error:
            raise way.end("query", Verdict.ERROR, str(error), "ask otherwise, or change the rule") from error


def _of_api(rules: Iterable[Rule], question: Question) -> Iterator[Rule]:
    api = question.api or (Api.CUSTOM if question.resource else None)
    return (rule for rule in rules if api in {None, rule.api})


def _place(rule: Rule) -> str:
    return f"{rule.id} ({rule.file}:{rule.line})"


def _beside(other: Metric, metric: Metric) -> str:
    """Return what the other metric is to the one that is explained."""
    if (other.rule.api, other.qualified) == (metric.rule.api, metric.qualified):
        return "it, too; the last rule in the files wins"
    how = f"ask for {other.qualified}" if other.resource else "ask with --api=external"
    return f"the {other.rule.api} metric {other.qualified}, which is another: {how} to have that explained"


def _shown(question: Question) -> str:
    return f"{question.resource.qualified}/{question.name}" if question.resource else question.name


def _kind(question: Question) -> str:
    return question.resource.qualified if question.resource else "object"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
