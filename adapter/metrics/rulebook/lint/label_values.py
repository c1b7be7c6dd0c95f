"""Warnings about templates that put the values of a request behind an operator of their own."""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.names import label_key_problem
from adapter.foundation.objects.selectors import EVERYTHING, Operator, Requirement, Selector
from adapter.foundation.promql.tree import SelectorNode, selectors_of
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.metrics.rulebook.findings import Code, Finding
from adapter.metrics.rulebook.query_rendering import RenderError, exact_query
from adapter.metrics.rulebook.requests import Asked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from adapter.metrics.rulebook.lint.rule_positions import Place
    from adapter.metrics.rulebook.model import Metric

_VALUES: Final = "LabelValuesByName"
_NAMES: Final = ("some-object", "some-other-object")
_ANY_LABEL: Final = "zq7_label"
"""A label that only a `range` over all labels finds."""
_WORD: Final = re.compile(r"[.\"`]([A-Za-z_][A-Za-z0-9_]*)")
"""Matches a field of the template, or the beginning of one of its strings: what may be the name of a label."""
_MOST_LABELS: Final = 50
_FIRST_VALUE: Final = 7_340_000
"""The first value that no template contains by chance. Numbers are also allowed outside quotes."""
_FIX: Final = "write <<.LabelMatchers>> instead, which has the operators of the request"


def operators_ignored(metric: Metric, place: Place) -> Iterator[Finding]:
    """Yield a finding for each label whose values the template compares in another way than the request."""
    if not uses_values(metric):
        return
    key = metric.query_key
    if metric.object_label is not None and _is_compared("|".join(_NAMES), {"="}, _selectors_for(metric, EVERYTHING)):
        message = f"`{key}` compares {metric.object_label!r} by =, so a request for several objects has no value"
        yield place.warning(Code.OPERATOR_IGNORED, (key,), message, _FIX)
    for wrong in _wrong_labels(metric):
        message = f"`{key}` compares {wrong}"
        yield place.warning(Code.OPERATOR_IGNORED, (key,), message, _FIX)


def uses_values(metric: Metric) -> bool:
    """Return whether the template of a metric's query uses the values of the request by name."""
    return _VALUES in metric.rule.metrics_query.fields


def possible_labels(metric: Metric) -> Iterator[str]:
    """Yield what may be the name of a label of a selector in the template of a metric's query, each once."""
    own = {metric.namespace_label, metric.object_label}
    words = dict.fromkeys(match[1] for match in _WORD.finditer(metric.rule.metrics_query.text))
    return islice((word for word in words if word not in own and label_key_problem(word) is None), _MOST_LABELS)


def _wrong_labels(metric: Metric) -> Iterator[str]:
    """Yield what is wrong with the comparison of each label of the metric's selector that is compared wrongly."""
    labels = chain((_ANY_LABEL,), possible_labels(metric))
    values = {label: str(_FIRST_VALUE + number) for number, label in enumerate(labels)}
    # One query for all labels: a template may take half a second.
    excluding = _selectors_for(metric, _selector(Operator.NOT_EQUALS, {each: (values[each],) for each in values}))
    several = _selectors_for(
        metric, _selector(Operator.IN, {each: (values[each], f"{values[each]}0") for each in values})
    )
    for label, value in values.items():
        shown = "x" if label == _ANY_LABEL else label
        wrong = [f"{shown}!=a gets the values of a"] if _is_compared(value, {"=", "=~"}, excluding) else []
        if _is_compared(f"{value}|{value}0", {"="}, several):
            wrong.append(f"{shown} in (a,b) gets no value")
        if wrong:
            what = "labels" if label == _ANY_LABEL else repr(label)
            yield f"{what} by an operator of its own: {', and '.join(wrong)}"
            if label == _ANY_LABEL:
                # All labels have the same fault.
                return


def _selector(operator: Operator, values: dict[str, tuple[str, ...]]) -> Selector:
    return Selector(tuple(Requirement(label, operator, wanted) for label, wanted in values.items()))


def _selectors_for(metric: Metric, selector: Selector) -> tuple[SelectorNode, ...]:
    """Return the selectors of the query for a metric's selector; none if there is no query, or if it is not read."""
    names = () if metric.resource is None else _NAMES
    try:
        asked = Asked("some-namespace" if metric.namespaced else None, names, selector)
        return tuple(selectors_of(parse_query(exact_query(metric, asked))))
    except (RenderError, UnreadableQueryError):
        return ()


def _is_compared(value: str, operators: Collection[str], selectors: Collection[SelectorNode]) -> bool:
    """Return whether a selector compares the value by these operators alone, and not also as the request does."""
    found = [{each.operator for each in selector.matchers if value in each.value} for selector in selectors]
    return any(used and used <= set(operators) for used in found)
