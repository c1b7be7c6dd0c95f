"""Turns a metric and a request into the text of a query.

There are three forms of a query: for the requested objects, for all objects of a namespace, and for all objects.
Whether a wider form may be sent instead of a narrower one is decided in `adapter.metrics.rulebook.plans`.

All values that a requester controls (namespace, names, selector) are checked first, and escaped where the template puts
them (`argument_escaping`), so that no value can end its matcher and add PromQL of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.names import is_namespace_name, is_object_name
from adapter.foundation.promql.tree_parser import UnreadableQueryError
from adapter.metrics.rulebook.templates.matchers import (
    Matcher,
    RenderError,
    names_matcher,
    presence_matcher,
    selector_matchers,
    value_matcher,
)
from adapter.metrics.rulebook.templates.template import PlacingError, TemplateError, template_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.objects.selectors import Selector
    from adapter.metrics.rulebook.model import Confinement, Metric
    from adapter.metrics.rulebook.requests import Asked

__all__ = ["RenderError", "exact_query", "namespace_query", "wide_query"]


LONGEST_CONFINED_QUERY: Final = 1 << 16
"""Longest query of an object in characters: it may contain the names of a thousand pods. Reading it takes 40 ms."""


def exact_query(metric: Metric, asked: Asked) -> str:
    """Return the query for one requester, as prometheus-adapter sends it. Raises RenderError."""
    matchers = selector_matchers(asked.selector)
    if metric.namespace_label is not None and metric.namespaced:
        matchers.append(_namespace_matcher(metric.namespace_label, asked.namespace))
    if metric.object_label is not None:
        matchers.append(_objects_matcher(metric, metric.object_label, asked.names))
    return _render_query(metric, matchers, _group_by(metric))


def namespace_query(metric: Metric, namespace: str, selector: Selector) -> str:
    """Return the query for all objects of a namespace; raises RenderError.

    For external metrics, it is the query for all series in the namespace that the selector selects.
    """
    matchers = selector_matchers(selector)
    if metric.namespace_label is None or not metric.namespaced:
        raise RenderError(f"no namespace restricts {metric.qualified}")
    matchers.append(_namespace_matcher(metric.namespace_label, namespace))
    matchers.extend(map(presence_matcher, _none_or_one(metric.object_label)))
    return _render_query(metric, matchers, _group_by(metric))


def wide_query(metric: Metric, selector: Selector) -> str:
    """Return the query for all objects in all namespaces; raises RenderError.

    Its rows also have the namespace label if the metric is namespaced. External metrics have no `.GroupBy`: their rows
    have the labels of the rule's own query.
    """
    labels = _none_or_one(metric.namespace_label) if metric.namespaced else ()
    matchers = selector_matchers(selector)
    group_by: tuple[str, ...] = ()
    if metric.object_label is not None:
        group_by = (*labels, *_group_by(metric))
        labels = (*labels, metric.object_label)
    matchers.extend(map(presence_matcher, labels))
    return _render_query(metric, matchers, group_by)


def _group_by(metric: Metric) -> tuple[str, ...]:
    """Return the labels, other than the namespace, that distinguish values."""
    return (*_none_or_one(metric.object_label), *_none_or_one(metric.container_label))


def _none_or_one(label: str | None) -> tuple[str, ...]:
    return () if label is None else (label,)


def _namespace_matcher(label: str, namespace: str | None) -> Matcher:
    if namespace is None or not is_namespace_name(namespace):
        raise RenderError(f"{namespace!r} is not the name of a namespace: use a DNS label")
    return value_matcher(label, namespace)


def _objects_matcher(metric: Metric, label: str, names: Sequence[str]) -> Matcher:
    if not names:
        raise RenderError("the request names no object: name one")
    if metric.resource is not None and metric.resource.qualified == "namespaces":
        return names_matcher(label, [_namespace_matcher(label, name).value for name in names])
    for name in names:
        if not is_object_name(name):
            raise RenderError(f"{name!r} is not the name of an object: use one segment of a path")
    return names_matcher(label, names)


def _render_query(metric: Metric, matchers: Sequence[Matcher], group_by: tuple[str, ...]) -> str:
    try:
        query = metric.rule.metrics_query.render(template_arguments(metric.series, matchers, group_by))
    except PlacingError as e:
        raise RenderError(f"{_place(metric)}: {e}") from e
    except TemplateError as e:
        raise RenderError(_rule_fails(metric, f"fails in line {e.line}: {e}")) from e
    if not query.strip():
        raise RenderError(_rule_fails(metric, "results in an empty query"))
    return query if metric.rule.confinement is None else _confined_query(metric, metric.rule.confinement, query)


def _confined_query(metric: Metric, confinement: Confinement, query: str) -> str:
    """Return the query with the namespace's matchers in every selector, whatever the template does with the request.

    Raises RenderError if that is not certain.
    """
    if len(query) > LONGEST_CONFINED_QUERY:
        raise RenderError(_rule_fails(metric, f"results in a query of {len(query):,} characters, which is too long"))
    try:
        return confinement.matchers.in_query(query)
    except UnreadableQueryError as e:
        raise RenderError(_rule_fails(metric, f"cannot be confined to its namespace: {e}")) from e


def _rule_fails(metric: Metric, reason: str) -> str:
    return f"{_place(metric)} {reason}: correct the rule"


def _place(metric: Metric) -> str:
    return f"the {metric.query_key} of {metric.rule.place}"
