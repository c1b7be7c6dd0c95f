"""Finds the rule that provides the requested metric, or nearly does, from the series in Prometheus.

Series are looked up again. The look-ups of all rules together have one deadline, so an explanation ends whatever
Prometheus does.
"""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.prometheus.errors import PrometheusError, PrometheusTimeoutError
from adapter.foundation.sources.prometheus.public_errors import without_series
from adapter.metrics.readings.catalogue.series_look_ups import LookUpKey, look_up_key, what_is_missing
from adapter.metrics.readings.explain.explanation import ExplanationVerdict, Outcome, Question
from adapter.metrics.readings.explain.explanation_progress import Answered, Progress, name_in_question
from adapter.metrics.rulebook.derivation import Trace, WantedMetric, passes, traces
from adapter.metrics.rulebook.findings import Severity
from adapter.metrics.rulebook.lint.examples import distance_from_pods
from adapter.metrics.rulebook.model import Api, Metric, RefusedRule, ResourceRules, Rule, Rulebook
from adapter.metrics.rulebook.near_misses import MOST_RULES, Closeness
from adapter.metrics.rulebook.provided_metrics import SeriesShapes, namespace_labels, static_metrics
from adapter.metrics.rulebook.reload.refused_misses import refusal, refused_for, refused_of_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adapter.metrics.readings.reading_sources import ReadingSources


_MOST_COMPARED = 1000
"""Limit on the names of metrics that are compared with the requested one, letter by letter."""
_LETTERS_APART = 6


class RuleSearch:
    """Finds the metric of a question; safe to call from any thread."""

    def __init__(self, sources: ReadingSources) -> None:
        self._sources = sources
        self._resolve = sources.objects.resource

    def metric(self, progress: Progress, rulebook: Rulebook) -> Metric:
        """Return the requested metric, as the last rule that provides it defines it. Raises Answered if none does."""
        question = progress.question
        if question.api is Api.RESOURCE:
            return _usage(progress, rulebook)
        wanted = WantedMetric(question.name, question.resource.qualified if question.resource else None)
        looked_up: dict[LookUpKey, SeriesShapes | PrometheusError] = {}
        found: list[Trace] = []
        names: set[str] = set()
        """Names of other metrics that may be meant."""
        rules = tuple(rule for rule in rulebook.rules if _is_of_api(rule.api, question))
        for rule in rules:
            shapes = self._shapes(progress, rule, looked_up)
            if isinstance(shapes, PrometheusError):
                text = f"{rule.place}: its series cannot be looked up: {progress.reason(shapes)}"
                progress.note("series", Outcome.ERROR, text)
                progress.sees_all = False
                continue
            found += traces(rule, self._near(progress, rule, shapes, names), wanted, self._resolve)
        metrics = [trace.metric for trace in found if trace.metric] or list(self._static(rules, wanted, looked_up))
        metrics = metrics or unnamed_usage(rulebook.resource, question)
        if not metrics:
            others = (rule for rule in rulebook.rules if rule not in rules)
            names |= self._spelt_out(rules, question.name)
            elsewhere = next(self._static(others, WantedMetric(question.name), looked_up), None)
            raise _no_rule(progress, rulebook, found, names, elsewhere)
        return metric_in_question(progress, metrics)

    def _near(self, progress: Progress, rule: Rule, shapes: SeriesShapes, names: set[str]) -> SeriesShapes:
        """Return the series that the question could mean, and add the similar names of other metrics to `names`.

        This runs in slices beside requests: there may be 50,000 series, and each is matched with the patterns of the
        rule.
        """
        near, name = SeriesShapes(), progress.question.name
        for part in self._sources.pace.slices(shapes.names()):
            if progress.seconds_to_look_up() <= 0:
                progress.note("series", Outcome.ERROR, f"{rule.place}: its series are too many to look through in time")
                progress.sees_all = False
                break
            for series in part:
                served_as = rule.naming.name_for(series)
                if name in {series, served_as}:
                    near.add(({**dict.fromkeys(shapes.labels(series), ""), "__name__": series},))
                elif served_as and len(names) < _MOST_COMPARED and abs(len(served_as) - len(name)) <= _LETTERS_APART:
                    names.update((served_as,) if passes(rule, series) else ())
        return near

    def _spelt_out(self, rules: Iterable[Rule], name: str) -> set[str]:
        """Return the similar names that rules spell out, if these metrics are served even without series."""
        served = {metric.name for rule in rules for metric in self._unseen(rule)}
        return set(sorted(each for each in served if abs(len(each) - len(name)) <= _LETTERS_APART)[:_MOST_COMPARED])

    def _static(
        self,
        rules: Iterable[Rule],
        wanted: WantedMetric,
        looked_up: Mapping[LookUpKey, SeriesShapes | PrometheusError],
    ) -> Iterator[Metric]:
        """Yield the wanted metrics among those served without series; some rules have been looked up."""
        for rule in rules:
            metric = wanted.among(self._unseen(rule))
            if metric is not None:
                is_known = isinstance(looked_up.get(look_up_key(rule)), SeriesShapes)
                yield replace(metric, assumes_labels=False) if is_known else metric

    def _unseen(self, rule: Rule) -> Iterable[Metric]:
        """Return the metrics that the rule spells out, if they are served without series."""
        return static_metrics(rule, self._resolve) if self._sources.settings.serves_unseen_series else ()

    def _shapes(
        self, progress: Progress, rule: Rule, known: dict[LookUpKey, SeriesShapes | PrometheusError]
    ) -> SeriesShapes | PrometheusError:
        key = look_up_key(rule)
        if key not in known:
            try:
                known[key] = self._looked_up(progress, rule)
            except PrometheusError as error:
                known[key] = error
        return known[key]

    def _looked_up(self, progress: Progress, rule: Rule) -> SeriesShapes:
        """Return the series that Prometheus has for the rule; raises PrometheusError."""
        shapes = SeriesShapes(namespace_labels=namespace_labels((rule,)))
        start = self._sources.clock.wall() - self._sources.settings.metrics_max_age_seconds
        prometheus = self._sources.backends.of(rule.backend).prometheus
        answer = prometheus.series(rule.series_query, start=start, timeout_seconds=_time_left(progress, rule))
        for batch in answer.batches(self._sources.pace):
            shapes.add(batch)
            _time_left(progress, rule)
        if missing := what_is_missing(shapes, answer.warnings):
            text = missing if progress.to_owner else without_series(missing)
            progress.note(
                "series", Outcome.INFO, f"{rule.place}: Prometheus returned only a part of its series: {text}"
            )
            progress.sees_all = False
        return shapes


def metric_in_question(progress: Progress, metrics: list[Metric]) -> Metric:
    """Return the metric, of several, that the question is about, and note the others.

    A question without a kind does not mean all kinds: the last rule for the likeliest kind wins.
    """
    metric = min(reversed(metrics), key=distance_from_pods)
    progress.rule = metric.rule.id
    source = f" from the series {metric.series}" if metric.series else ""
    asked = "" if metric.rule.backend is None else f", and asks the backend {metric.rule.backend.name}"
    progress.note("rule", Outcome.OK, f"{metric.rule.place} provides {metric.qualified}{source}{asked}")
    for other in {other.rule.id: other for other in metrics if other.rule is not metric.rule}.values():
        progress.note("rule", Outcome.INFO, f"{other.rule.place} provides {_relation_to(other, metric)}")
    return metric


def usage_metrics_named(rules: ResourceRules, question: Question) -> list[Metric]:
    """Return the metrics that `resourceRules` serve under this name, for the given kind or for any kind."""
    kinds = {question.resource} if question.resource else {metric.resource for metric in rules.metrics}
    return [metric for metric in rules.metrics if metric.name == question.name and metric.resource in kinds]


def unnamed_usage(rules: ResourceRules, question: Question) -> list[Metric]:
    """Return the metrics of `resourceRules` under the name if no API is named, since other APIs take precedence."""
    named = question.api is not None or question.selector != EVERYTHING
    return [] if named else usage_metrics_named(rules, question)


def _usage(progress: Progress, rulebook: Rulebook) -> Metric:
    metrics = usage_metrics_named(rulebook.resource, progress.question)
    if metrics:
        return metric_in_question(progress, metrics)
    for rule in rulebook.refused:
        if rule.id == f"resourceRules.{progress.question.name}":
            raise _refused_rule_answer(progress, rulebook, rule)
    served = ", ".join(metric.qualified for metric in rulebook.resource.metrics) or "nothing"
    cause = f"no rule under `resourceRules` provides {name_in_question(progress.question)}; they provide: {served}"
    raise progress.end("rule", ExplanationVerdict.NO_VALUE, cause, "write resourceRules.cpu and resourceRules.memory")


def note_refused(progress: Progress, rulebook: Rulebook) -> None:
    """Note how many rules are in force, and which are not, with the reasons if the reader has the files anyway.

    Others may read one metric, and must not learn the content of other rules.
    """
    reasons = {finding.rule: finding for finding in reversed(rulebook.findings) if finding.severity is Severity.ERROR}
    for rule in rulebook.refused:
        serves = "its last good version is served" if rule.id in rulebook.retained else "serves nothing"
        why = f": {reasons[rule.id]}" if progress.to_owner and rule.id in reasons else f" ({rule.file}:{rule.line})"
        progress.note("rules", Outcome.INFO, f"{rule.id} is refused and {serves}{why}")
    number = len(rulebook.rules) + len(rulebook.resource.rules)
    progress.note("rules", Outcome.OK, f"{number} rule{'' if number == 1 else 's'} in force")


def _time_left(progress: Progress, rule: Rule) -> float:
    """Return the seconds that the look-up may take; raises PrometheusTimeoutError if none is left."""
    left = progress.seconds_to_look_up()
    if left <= 0:
        cause = f"not looked up: all look-ups together took more than {progress.patience.look_ups:g} s"
        raise PrometheusTimeoutError(rule.series_query, cause)
    return left


def _refused_rule_answer(progress: Progress, rulebook: Rulebook, rule: RefusedRule) -> Answered:
    """Return the answer that a refused rule would have provided the metric, with the rule's error."""
    errors = (one for one in rulebook.findings if one.rule == rule.id and one.severity is Severity.ERROR)
    finding = next(errors, None)
    cause = f"{rule.id} ({rule.file}:{rule.line}) would provide {name_in_question(progress.question)}, but is refused"
    if finding is None:
        return progress.end("rule", ExplanationVerdict.NO_VALUE, cause, "see the adapter's log for the reason")
    return progress.end("rule", ExplanationVerdict.NO_VALUE, f"{cause}: {finding.message}", finding.fix)


def _refused_for(rulebook: Rulebook, question: Question) -> tuple[Closeness, RefusedRule] | None:
    """Return the refused rule that would provide the metric, and how certain that is."""
    rules = [rule for rule in refused_of_names(rulebook.refused) if _is_of_api(rule.api, question)]
    return refused_for([refusal(rule) for rule in rules[:MOST_RULES]], question.name)


def _no_rule(
    progress: Progress, rulebook: Rulebook, found: list[Trace], names: set[str], elsewhere: Metric | None
) -> Answered:
    """Return the answer that no rule provides the metric; `elsewhere` is the one of this name in the other API."""
    for trace in found:
        progress.note("rule", Outcome.NO, f"{trace.rule.place}: {trace.obstacle}")
    metric = name_in_question(progress.question)
    refused = _refused_for(rulebook, progress.question)
    if refused is not None and (refused[0] is Closeness.EXACT or not found):
        return _refused_rule_answer(progress, rulebook, refused[1])
    if not rulebook.rules and not rulebook.refused:
        text = "the rule files hold no rule for custom or external metrics"
        return progress.end(
            "rule", ExplanationVerdict.NO_VALUE, f"no rule provides {metric}: {text}", "add a rule that provides it"
        )
    if found:
        first = found[0]
        cause = f"no rule provides {metric}: {first.rule.place}: {first.obstacle}"
        return Answered(ExplanationVerdict.NO_VALUE, cause, "change that rule")
    if not progress.sees_all:
        fix = "try again when Prometheus answers the look-ups that failed"
        return progress.end("rule", ExplanationVerdict.ERROR, f"it is not known whether a rule provides {metric}", fix)
    if elsewhere is not None:
        cause = f"no rule provides {metric}: {elsewhere.rule.place} provides {_other_metric_text(elsewhere)}"
        return progress.end("rule", ExplanationVerdict.NO_VALUE, cause, _how_to_explain(elsewhere))
    near = difflib.get_close_matches(progress.question.name, sorted(names), n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "check whether Prometheus has such a series at all"
    return progress.end(
        "rule", ExplanationVerdict.NO_VALUE, f"no rule provides {metric} from the series that Prometheus has", hint
    )


def _is_of_api(api: Api, question: Question) -> bool:
    return (question.api or (Api.CUSTOM if question.resource else None)) in {None, api}


def _relation_to(other: Metric, metric: Metric) -> str:
    """Return how the other metric relates to the explained one."""
    if (other.rule.api, other.qualified) == (metric.rule.api, metric.qualified):
        return "the same metric; the last rule in the files wins"
    return f"{_other_metric_text(other)}: {_how_to_explain(other)}"


def _other_metric_text(other: Metric) -> str:
    return f"the {other.rule.api} metric {other.qualified}, which is another"


def _how_to_explain(other: Metric) -> str:
    how = f"ask for {other.qualified}" if other.resource else "ask with --api=external"
    return f"{how} to explain that one"
