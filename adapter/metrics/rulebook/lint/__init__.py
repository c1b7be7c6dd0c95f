"""Warnings about valid rules: reported by `tidewatch-adapter check`, and never a reason to refuse a rule.

This package is pure: it turns rule files and the parsed rules into findings, and needs no Prometheus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.metrics.rulebook.lint.examples import example_of
from adapter.metrics.rulebook.lint.label_values import operators_ignored
from adapter.metrics.rulebook.lint.own_series_sources import takes_anybodys_series
from adapter.metrics.rulebook.lint.queries import query_findings
from adapter.metrics.rulebook.lint.rule_checks import collisions, long_refresh, rows_of_all_namespaces, value_not_served
from adapter.metrics.rulebook.lint.rule_positions import Place, rule_nodes
from adapter.metrics.rulebook.lint.selection import open_patterns, selects_everything, unquoted_series
from adapter.metrics.rulebook.plans import plan_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from adapter.foundation.documents.load import Document
    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.findings import Finding
    from adapter.metrics.rulebook.model import Metric, Plan, Rulebook

__all__ = ["example_of", "lint"]


def lint(
    documents: Sequence[Document],
    rulebook: Rulebook,
    resolve: ResolveResource,
    plan: Callable[[Metric], Plan] = plan_of,
) -> tuple[Finding, ...]:
    """Return what is doubtful about the rules of a rulebook, in the order of the files.

    `documents` are the files from which the rulebook was parsed. `plan` returns the plan of a rule's metric.
    """
    order = {file: position for position, file in enumerate(rulebook.files)}
    found = _findings(documents, rulebook, resolve, plan)
    return tuple(sorted(found, key=lambda finding: (order.get(finding.file, 0), finding.line, finding.code)))


def _findings(
    documents: Sequence[Document], rulebook: Rulebook, resolve: ResolveResource, plan: Callable[[Metric], Plan]
) -> Iterator[Finding]:
    nodes = rule_nodes(documents)
    places = {rule.id: Place(rule.id, nodes[rule.id]) for rule in rulebook.rules}
    for rule in rulebook.rules:
        place = places[rule.id]
        yield from open_patterns(rule, place)
        yield from selects_everything(rule, place)
        yield from unquoted_series(rule, place)
        yield from long_refresh(rule, place)
        yield from rows_of_all_namespaces(rule, place)
        yield from value_not_served(rule, place)
        example = example_of(rule, resolve)
        yield from takes_anybodys_series(rule, example, place)
        if example is not None:
            yield from query_findings(example, place, plan)
            yield from operators_ignored(example, place)
    for usage in rulebook.resource.rules:
        for metric in usage.metrics:
            yield from query_findings(metric, Place(usage.id, nodes[usage.id]), plan)
            yield from operators_ignored(metric, Place(usage.id, nodes[usage.id]))
    yield from collisions(rulebook.rules, places, resolve)
