"""Confines a rule to one namespace, so that none of its queries sees the series of another namespace.

The matchers are added to the rule's look-up here, and to each of its queries when the query is rendered
(`rulebook/query_rendering`). A template may build the query from the request, so that confinement can be proven only
for the text that is sent. This module also tries the rule with made-up requests, so that a rule that cannot be confined
is refused before anybody uses it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.promql.narrowing import Matchers
from adapter.foundation.promql.tree import TreeMatcher
from adapter.foundation.promql.tree_parser import UnreadableQueryError
from adapter.metrics.rulebook.findings import Code
from adapter.metrics.rulebook.lint import example_of
from adapter.metrics.rulebook.model import Api, Confinement, Metric, Rule
from adapter.metrics.rulebook.plans.sample_age import times_of
from adapter.metrics.rulebook.query_rendering import RenderError, exact_query
from adapter.metrics.rulebook.requests import Asked

if TYPE_CHECKING:
    from adapter.foundation.documents.tree import Document
    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.parsing.notes import Notes

_REQUESTS: Final = (
    (("web-0",), EVERYTHING),
    (("web-0", "web-1"), parse_selector("some_label=a,other_label in (b,c),!third_label")),
)
"""Names of objects and selectors of made-up requests."""
_NAMESPACES: Final = "namespaces"
_FIX: Final = "write PromQL that `tidewatch-adapter check` can read, with a selector for everything that it reads"


def confined_rule(
    rule: Rule, namespace: str, label: str, resolve: ResolveResource, document: Document, notes: Notes
) -> Rule | None:
    """Return the rule, confined to the series of one namespace; None, after noting why, if that is not certain.

    `label` is the Prometheus label that contains the namespace: it is the administrator's choice, since the owner of a
    rule could otherwise name one whose values resemble the name of a namespace.
    """
    node = document.root
    if node is None:
        return None
    of_label = {resource.qualified for given, resource in rule.resources.overrides if given == label}
    of_namespace = {given for given, resource in rule.resources.overrides if resource.qualified == _NAMESPACES}
    if of_label != {_NAMESPACES} or of_namespace != {label}:
        message = f"`resources` must say of the label {label} alone that it contains the namespace"
        notes.error(Code.NOT_CONFINED, node, message, "remove what it says about namespaces")
        return None
    if rule.metrics_query.repeats or (rule.resources.template is not None and rule.resources.template.repeats):
        message = "its template repeats something (`range`, `template`), so it may hold up the rules of others"
        notes.error(Code.BAD_TEMPLATE, node, message, "write it out")
        return None
    confinement = Confinement(namespace, Matchers((TreeMatcher(label, "=", namespace),)))
    try:
        series_query = confinement.matchers.in_selector(rule.series_query)
        confined = replace(rule, series_query=series_query, confinement=confinement)
        _try_queries(confined, namespace, resolve)
    except (UnreadableQueryError, RenderError) as e:
        message = f"the rule cannot be confined to the namespace {namespace}: {e}"
        notes.error(Code.NOT_CONFINED, node, message, _FIX)
        return None
    return confined


def _try_queries(rule: Rule, namespace: str, resolve: ResolveResource) -> None:
    """Raise RenderError if the queries of made-up requests cannot be confined."""
    example = example_of(rule, resolve)
    times = None if example is None else times_of(example)
    for metric in filter(None, (example, times)):
        _try_metric(metric, namespace)


def _try_metric(metric: Metric, namespace: str) -> None:
    """Raise RenderError if every made-up request is refused; some may be, as in the check of a rule file."""
    refusals: list[RenderError] = []
    for names, selector in _REQUESTS:
        objects = names if metric.rule.api is Api.CUSTOM else ()
        try:
            exact_query(metric, Asked(namespace if metric.namespaced else None, objects, selector))
        except RenderError as e:
            refusals.append(e)
    if len(refusals) == len(_REQUESTS):
        raise refusals[0]
