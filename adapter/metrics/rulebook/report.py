"""Everything that is known about rule files, rule by rule, as `tidewatch-adapter check` reports it (pure)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapter.metrics.rulebook.findings import Finding, Severity
from adapter.metrics.rulebook.lint import example_of, lint
from adapter.metrics.rulebook.model import PlanKind, Policy, all_rules
from adapter.metrics.rulebook.plans import plan_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.documents.load import Document
    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.model import Api, Metric, Plan, RefusedRule, ResourceRule, Rule, Rulebook


@dataclass(frozen=True, slots=True)
class ServedMetric:
    """One metric that a rule provides from the series of Prometheus."""

    name: str
    """Name in the lists of the API, such as `pods/http_rps` or `queue_depth`."""
    namespaced: bool
    series: int | None
    """Number of series of that name in Prometheus, all of which one wide query reads; None if it is not known."""
    query: str | None
    """The query that the rule's plan sends, with made-up names such as `some-namespace`; None if nobody reads it."""
    times_query: str | None = None
    """Query for the times of its samples; None if the rule does not limit their age, or nobody reads it."""


@dataclass(frozen=True, slots=True)
class ServedMetrics:
    """The metrics that a rule provides from the series of Prometheus."""

    metrics: tuple[ServedMetric, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleReport:
    """The report on one rule."""

    id: str
    api: Api
    file: str
    line: int
    findings: tuple[Finding, ...]
    plan: Plan | None
    """Plan of the rule; None if the rule is refused, or nothing is known of its metrics."""
    metrics: tuple[ServedMetric, ...] | None
    """Metrics of the rule; None if Prometheus was not asked."""
    policy: Policy | None
    """Policy of the rule; None if the rule is refused."""
    backend: str | None = None
    """Name of the backend that the rule queries; None for the Prometheus of the flags, or if the rule is refused."""

    @property
    def status(self) -> str:
        """The worst severity of the findings: `error`, `warning` or `ok`."""
        return worst_severity(self.findings)


@dataclass(frozen=True, slots=True)
class RulebookReport:
    """The report on a set of rule files."""

    files: tuple[str, ...]
    rules: tuple[RuleReport, ...]
    findings: tuple[Finding, ...]
    """Findings that belong to no rule."""

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """All findings: first those that belong to no rule, then those of the rules."""
        return (*self.findings, *(finding for rule in self.rules for finding in rule.findings))

    def count(self, severity: Severity) -> int:
        """Return how many findings are of this severity."""
        return sum(finding.severity is severity for finding in self.all_findings)


def rulebook_report(
    documents: Sequence[Document],
    rulebook: Rulebook,
    resolve: ResolveResource,
    served: Mapping[str, ServedMetrics] | None = None,
) -> RulebookReport:
    """Return the report on a rulebook. `served` has metrics by rule; None if Prometheus was not asked."""
    by_rule: defaultdict[str | None, list[Finding]] = defaultdict(list)
    planned = _Plans()
    for finding in (*rulebook.findings, *lint(documents, rulebook, resolve, planned.of)):
        by_rule[finding.rule].append(finding)
    for rule_id, metrics in (served or {}).items():
        by_rule[rule_id].extend(metrics.findings)
    usage = rulebook.resource.rules
    rules: list[Rule | RefusedRule | ResourceRule] = [*rulebook.rules, *rulebook.refused, *usage]
    plans = {rule.id: _plan(rule, resolve, planned) for rule in rulebook.rules}
    plans |= {rule.id: _usage_plan(rule, planned) for rule in usage}
    policies = {rule.id: rule.policy for rule in rulebook.rules} | {rule.id: Policy() for rule in usage}
    backends = {rule.id: rule.backend.name for rule in all_rules(rulebook) if rule.backend is not None}
    position = {file: number for number, file in enumerate(rulebook.files)}
    rules.sort(key=lambda rule: (position[rule.file], rule.line))
    return RulebookReport(
        files=tuple(dict.fromkeys(rulebook.files)),
        rules=tuple(
            RuleReport(
                id=rule.id,
                api=rule.api,
                file=rule.file,
                line=rule.line,
                findings=_in_order(by_rule[rule.id]),
                plan=plans.get(rule.id),
                metrics=None if served is None else _metrics(served.get(rule.id)),
                policy=policies.get(rule.id),
                backend=backends.get(rule.id),
            )
            for rule in rules
        ),
        findings=_in_order(by_rule[None]),
    )


def worst_severity(findings: Iterable[Finding]) -> str:
    """Return the worst severity of the findings: `error`, `warning` or `ok`."""
    severities = {finding.severity for finding in findings}
    found = next((severity for severity in (Severity.ERROR, Severity.WARNING) if severity in severities), None)
    return "ok" if found is None else found.value


class _Plans:
    """The plan of each rule's query. A proof takes milliseconds, and the lint findings need the same plans."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Plan] = {}

    def of(self, metric: Metric) -> Plan:
        """Return the plan of a metric; metrics with the same query share one plan."""
        key = (metric.rule.id, metric.query_key)
        if key not in self._known:
            self._known[key] = plan_of(metric)
        return self._known[key]


def _plan(rule: Rule, resolve: ResolveResource, planned: _Plans) -> Plan | None:
    example = example_of(rule, resolve)
    return None if example is None else planned.of(example)


def _usage_plan(rule: ResourceRule, planned: _Plans) -> Plan:
    """Return the narrower plan of the rule's two queries; its reasons name the query."""
    plans = [(metric.query_key, planned.of(metric)) for metric in rule.metrics]
    key, plan = max(plans, key=lambda named: tuple(PlanKind).index(named[1].kind))
    return replace(plan, reasons={kind: f"`{key}`: {reason}" for kind, reason in plan.reasons.items()})


def _metrics(served: ServedMetrics | None) -> tuple[ServedMetric, ...]:
    return () if served is None else served.metrics


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: (finding.line, finding.column)))
