"""Finds out why a metric has, or lacks, a value, by taking the steps of a request and reporting each of them.

Values are queried again, because an explanation must not trust memory. The verdict is the API's answer to these values:
a value, none (an empty list, or 404), or an error. A running process knows which rule provides the metric, and adds
what it has in memory; a command looks the series up itself. Each query has a deadline, and so has the explanation, so
it ends whatever Prometheus does.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.foundation.reports.counts import count_of
from adapter.metrics.readings.errors import (
    NoDataUncertainError,
    NoObjectsMatchError,
    NoSampleError,
    ObjectsNotKnownError,
    QueryRefusedByPrometheusError,
    ReadingError,
    SampleTooOldError,
    SourceSlowError,
    SourceUnreachableError,
    UnanswerableSelectorError,
)
from adapter.metrics.readings.explain.answers import AnswerSteps
from adapter.metrics.readings.explain.explanation import Explanation, ExplanationStep, ExplanationVerdict, Question
from adapter.metrics.readings.explain.explanation_progress import (
    PATIENT,
    Answered,
    ExplainDeadlines,
    Progress,
    name_in_question,
)
from adapter.metrics.readings.explain.rules import RuleSearch, metric_in_question, note_refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.metrics.readings.explain.served_memory import ServedMemory
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.rulebook.model import Metric, Rulebook

_log = logging.getLogger(__name__)

_LOOK_AT_NAMES = "check whether it runs, and whether its name and the namespace are right"
_FIXES: Mapping[type[ReadingError], tuple[str, str]] = {
    QueryRefusedByPrometheusError: ("query", "change the rule's metricsQuery so that Prometheus can answer it"),
    SourceSlowError: (
        "query",
        "check whether Prometheus answers other queries; if it does, make this one cheaper, as by a recording rule",
    ),
    SourceUnreachableError: ("query", "check whether Prometheus runs, and its address and credentials"),
    UnanswerableSelectorError: ("query", "change the request or the rule"),
    ObjectsNotKnownError: ("objects", "check the rights to list and watch them"),
    NoDataUncertainError: ("onNoData", ""),
    SampleTooOldError: (
        "maxSampleAge",
        "check whether the targets are up, and how often they are scraped; or raise `maxSampleAge`",
    ),
}
"""For each error, the step at which the answer ends, and what to do if the error does not say so itself."""


class Explainer:
    """Answers questions; safe to call from any thread."""

    def __init__(self, sources: ReadingSources, patience: ExplainDeadlines = PATIENT) -> None:
        """Without a cluster, the objects of `sources` are `SeenObjects`: nobody knows which objects lack a sample."""
        self._sources = sources
        self._patience = patience
        self._search = RuleSearch(sources)

    def explain(
        self,
        question: Question,
        rulebook: Rulebook,
        notes: Iterable[ExplanationStep] = (),
        memory: ServedMemory | None = None,
    ) -> Explanation:
        """Return the explanation; never raises because of Prometheus or the cluster.

        `notes` are steps that the caller knows already, such as who asked for the metric last. With `memory`, the rule
        is known without a query, and the memory is also explained.
        """
        progress = Progress(question, self._patience, self._sources.clock.monotonic, to_owner=memory is None)
        try:
            metric = self._metric(progress, rulebook, notes, memory)
            progress.question = question = question.of_kind(metric.resource)
            AnswerSteps(self._sources, progress, metric).take(rulebook.resource)
            verdict, cause, fix = ExplanationVerdict.VALUE, f"{count_of(len(progress.values), 'value')} found", ""
        except Answered as answered:
            verdict, cause, fix = answered.verdict, answered.cause, answered.fix
        except ReadingError as error:
            ended = _answer_of_error(progress, error)
            verdict, cause, fix = ended.verdict, ended.cause, ended.fix
        return Explanation(
            metric=name_in_question(question),
            namespace=question.namespace,
            object=None if question.object is None else f"{_kind(question)}/{question.object}",
            verdict=verdict,
            cause=cause,
            fix=fix or None,
            rule=progress.rule,
            query=progress.query,
            steps=tuple(progress.steps),
            values=progress.values,
        )

    def _metric(
        self, progress: Progress, rulebook: Rulebook, notes: Iterable[ExplanationStep], memory: ServedMemory | None
    ) -> Metric:
        """Return the metric that the question is about. Raises Answered if no rule provides it."""
        note_refused(progress, rulebook)
        known = list(memory.metrics(progress.question)) if memory else []
        try:
            metric = metric_in_question(progress, known) if known else self._search.metric(progress, rulebook)
        finally:
            progress.steps.extend(notes)
        if memory:
            progress.steps.extend(memory.steps(metric, progress.question))
        return metric


def _answer_of_error(progress: Progress, error: ReadingError) -> Answered:
    """Return the meaning of an error that the API answers with: no value for 404, else an error."""
    if isinstance(error, NoSampleError) and progress.absent:
        return Answered(ExplanationVerdict.NO_VALUE, progress.absent, _LOOK_AT_NAMES)
    verdict = (
        ExplanationVerdict.NO_VALUE
        if isinstance(error, NoSampleError | NoObjectsMatchError)
        else ExplanationVerdict.ERROR
    )
    if error.public_message != error.message and not progress.to_owner:
        _log.info("explaining %s: %s", name_in_question(progress.question), error.message)
    step, fix = next((_FIXES[kind] for kind in type(error).__mro__ if kind in _FIXES), ("values", ""))
    # No subclass of it is allowed: only plain strings may go into the document.
    return progress.end(step, verdict, str(error.message if progress.to_owner else error.public_message), fix)


def _kind(question: Question) -> str:
    return question.resource.qualified if question.resource else "object"
