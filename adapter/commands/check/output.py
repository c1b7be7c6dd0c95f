"""Prints the report of `tidewatch-adapter check`: for people in the style of a compiler, and for programs as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from adapter.foundation.objects.quantities import quantity_of
from adapter.foundation.reports.counts import count_of
from adapter.foundation.reports.documents import json_text
from adapter.foundation.reports.terminal_escaping import printable
from adapter.metrics.rulebook.findings import Code, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapter.metrics.rulebook.model import Policy
    from adapter.metrics.rulebook.report import RulebookReport, RuleReport

MOST_QUERIES = 1
"""The number of metrics of a rule whose query the text shows; JSON has all."""
_MOST_METRICS = 20
_LONGEST_LINE = 160
_OF_BACKENDS = frozenset({Code.BAD_BACKEND.value, Code.REPEATED_BACKEND.value})
"""Codes of findings about lines that may hold a password or a token, so that these lines are not shown."""


def as_json(report: RulebookReport) -> str:
    """Return the report as one JSON document, indented."""
    document = {
        "apiVersion": "tidewatch.io/v1alpha1",
        "kind": "RulebookReport",
        "files": report.files,
        "errors": report.count(Severity.ERROR),
        "warnings": report.count(Severity.WARNING),
        "findings": [{"file": finding.file, **_finding(finding)} for finding in report.findings],
        "rules": [_rule(rule) for rule in report.rules],
    }
    return json_text(document)


def as_text(report: RulebookReport, sources: Mapping[str, str]) -> str:
    """Return the report for people; `sources` holds the text of each file."""
    shown = {_finding_key(finding): finding for finding in reversed(report.all_findings)}
    counts = Counter(map(_finding_key, report.all_findings))
    # Split once: a file with a finding for each of its rules would otherwise be split as many times.
    texts = {file: text.splitlines() for file, text in sources.items()}
    lines = [
        line for key, finding in reversed(shown.items()) for line in _finding_lines(finding, texts, counts[key] - 1)
    ]
    lines += [line for rule in report.rules for line in _metric_lines(rule)]
    return "\n".join([*map(printable, lines), printable(_summary(report))])


def _rule(rule: RuleReport) -> dict[str, object]:
    return {
        "id": rule.id,
        "api": rule.api.value,
        "file": rule.file,
        "line": rule.line,
        "status": rule.status,
        "plan": rule.plan.kind.value if rule.plan else None,
        "plan_reason": rule.plan.reason if rule.plan else None,
        **({} if rule.backend is None else {"backend": rule.backend}),
        "policy": None if rule.policy is None else _policy(rule.policy),
        "findings": [_finding(finding) for finding in rule.findings],
        "metrics": None if rule.metrics is None else [asdict(metric) for metric in rule.metrics],
    }


def _policy(policy: Policy) -> dict[str, object]:
    return {
        "on_no_data": policy.on_no_data.value if policy.on_no_data else None,
        "no_data_value": policy.no_data_value,
        "max_sample_age_seconds": policy.max_sample_age_seconds,
        "refresh_seconds": policy.refresh_seconds,
        "window_seconds": policy.window_seconds,
    }


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "severity": finding.severity.value,
        "code": finding.code,
        "line": finding.line,
        "column": finding.column,
        "message": finding.message,
        "fix": finding.fix,
    }


def _finding_key(finding: Finding) -> tuple[object, ...]:
    """Return the key by which findings are shown once; a fault of Prometheus has the same key for all rules."""
    if finding.code == Code.NOT_ASKED.value:
        return (finding.severity, finding.message, finding.fix)
    return (finding,)


def _finding_lines(finding: Finding, texts: Mapping[str, Sequence[str]], others: int) -> Iterator[str]:
    """Yield a finding in the style of a compiler: the place, the line, a caret, and the fix.

    `texts` holds the lines of each file, and `others` is the number of other rules with the same finding.
    """
    place = f"{finding.file}:{finding.line}:{finding.column}"
    yield f"{place}: {finding.severity.value}[{finding.code}]: {finding.message}"
    lines = texts.get(finding.file, ())
    if 0 < finding.line <= len(lines) and finding.code not in _OF_BACKENDS:
        text = lines[finding.line - 1].replace("\t", " ")
        number = f"{finding.line:>5}"
        yield f"{number} | {text[:_LONGEST_LINE]}"
        if finding.column <= _LONGEST_LINE:
            yield f"{' ' * len(number)} | {' ' * (finding.column - 1)}^"
    yield f"      fix: {finding.fix}"
    if others:
        yield f"      the same for {count_of(others, 'other rule')} (-o json lists all)"
    yield ""


def _metric_lines(rule: RuleReport) -> Iterator[str]:
    """Yield what a rule serves, if Prometheus was queried."""
    if rule.metrics is None or (not rule.metrics and _is_not_asked(rule)):
        return
    plan = f", {rule.plan.kind} plan" if rule.plan else ""
    plan += f", backend {rule.backend}" if rule.backend else ""
    yield f"{rule.id} ({rule.file}:{rule.line}): {count_of(len(rule.metrics), 'metric')}{plan}"
    for metric in rule.metrics[:_MOST_METRICS]:
        scope = "" if metric.namespaced else ", not namespaced"
        number = "series not counted" if metric.series is None else f"{metric.series} series"
        yield f"    {metric.name}: {number}{scope}"
    for metric in rule.metrics[:MOST_QUERIES]:
        if metric.query:
            yield from _lines("query", metric.query)
        if metric.times_query:
            yield from _lines("query for the times of its samples", metric.times_query)
    if rule.policy and (said := ", ".join(_policy_texts(rule.policy))):
        yield f"    policy: {said}"
    if len(rule.metrics) > _MOST_METRICS:
        yield f"    … and {len(rule.metrics) - _MOST_METRICS} more (-o json lists all)"
    yield ""


def _is_not_asked(rule: RuleReport) -> bool:
    return any(finding.code == Code.NOT_ASKED.value for finding in rule.findings)


def _lines(what: str, query: str) -> Iterator[str]:
    """Yield the lines of a query."""
    first, *others = query.strip().expandtabs().split("\n")
    yield f"    {what}: {first}"
    yield from others


def _policy_texts(policy: Policy) -> Iterator[str]:
    """Yield the policies that a rule sets, in the notation of its author."""
    if policy.on_no_data is not None:
        yield f"onNoData {policy.on_no_data if policy.no_data_value is None else quantity_of(policy.no_data_value)}"
    spans = {
        "maxSampleAge": policy.max_sample_age_seconds,
        "refresh": policy.refresh_seconds,
        "window": policy.window_seconds,
    }
    yield from (f"{key} {seconds:g}s" for key, seconds in spans.items() if seconds is not None)


def _summary(report: RulebookReport) -> str:
    errors = count_of(report.count(Severity.ERROR), "error")
    warnings = count_of(report.count(Severity.WARNING), "warning")
    files = ", ".join(report.files) or "no file"
    return f"{count_of(len(report.rules), 'rule')} in {files}: {errors}, {warnings}"
