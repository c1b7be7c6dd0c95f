"""Warnings about the query of a rule: whether its result can be mapped to objects, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.promql.tree import Aggregation, Call, Node, SelectorNode, operands_of, selectors_of
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.metrics.rulebook.findings import Code, Finding
from adapter.metrics.rulebook.lint.labels import keeps_label
from adapter.metrics.rulebook.lint.rule_checks import value_for_several
from adapter.metrics.rulebook.lint.selection import spelled_out_name
from adapter.metrics.rulebook.model import Api, Metric, Plan, PlanKind, Rule
from adapter.metrics.rulebook.query_rendering import RenderError, exact_query
from adapter.metrics.rulebook.requests import Asked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.metrics.rulebook.lint.rule_positions import Place

_COUNTERS = ("_total", "_bucket")
"""Endings that only counters have. Names of gauges may end in `_count` and `_sum`, too."""
_FOR_COUNTERS = frozenset({"rate", "irate", "increase", "resets", "changes", "absent", "absent_over_time", "timestamp"})
_ASKED_NAMES = ("some-object", "some-other-object")


def query_findings(metric: Metric, place: Place, plan_of: Callable[[Metric], Plan]) -> Iterator[Finding]:
    """Yield the warnings about the query of a rule; `metric` is one that the rule provides."""
    try:
        tree = parse_query(example_query(metric))
    except (RenderError, UnreadableQueryError):
        # The rule reader has already reported this.
        return
    key = metric.query_key
    path = (key,)
    named = "<<.Series>>" if metric.series else "NAME"
    if _uses_raw(tree, _counters(metric)):
        message = f"`{key}` uses a counter, which only ever grows, without a rate"
        fix = f"write rate({named}{{<<.LabelMatchers>>}}[2m])"
        yield place.warning(Code.COUNTER_WITHOUT_RATE, path, message, fix)
    yield from value_for_several(metric.rule, tree, place)
    if _has_nameless(tree):
        message = f"a selector of `{key}` names no metric, so every series with those labels contributes to the value"
        yield place.warning(Code.NO_METRIC_NAME, path, message, f"begin it with {named}")
    dropped = [
        label for label in (metric.object_label, metric.container_label) if label and not keeps_label(tree, label)
    ]
    if dropped:
        message = f"the answer to `{key}` does not have the label {dropped[0]!r}, which maps values to their objects"
        yield place.warning(Code.NO_GROUP_BY, path, message, "aggregate with `by (<<.GroupBy>>)`")
        # This is also why the query cannot be shared.
        return
    plan = plan_of(metric)
    if plan.kind is PlanKind.EXACT:
        requester = "namespace" if metric.container_label else "requester"
        message = f"each {requester} of this rule needs a query of its own: {plan.reason}"
        yield place.warning(
            Code.EXACT_PLAN, path, message, "see the documentation of query plans for what can be shared"
        )


def example_query(metric: Metric) -> str:
    """Return the query for two objects in a namespace, or without objects or namespace if the metric has none.

    Raises RenderError.
    """
    names = () if metric.resource is None else _ASKED_NAMES
    namespace = "some-namespace" if metric.namespaced else None
    return exact_query(metric, Asked(namespace, names, EVERYTHING))


def _counters(metric: Metric) -> Callable[[str], bool]:
    """Return a test for the names of counters: those of the rule's series, or all if the query names them."""
    if metric.rule.api is Api.RESOURCE:
        return lambda name: name.endswith(_COUNTERS)
    is_counter = _is_counter(metric.rule)
    return lambda name: is_counter and name == metric.series


def _is_counter(rule: Rule) -> bool:
    """Return whether the names of all the rule's series are names of counters."""
    name = spelled_out_name(rule)
    if name is not None:
        return name.endswith(_COUNTERS)
    wanted = [series_filter.pattern.text for series_filter in rule.series_filters if series_filter.wanted]
    return any(text.endswith(tuple(f"{ending}$" for ending in _COUNTERS)) for text in wanted)


def _uses_raw(node: Node, is_counter: Callable[[str], bool]) -> bool:
    """Return whether a counter is used outside a function for counters."""
    if isinstance(node, SelectorNode):
        return any(matcher.label == "__name__" and is_counter(matcher.value) for matcher in node.matchers)
    return not _suits_counters(node) and any(_uses_raw(part, is_counter) for part in operands_of(node))


def _has_nameless(node: Node) -> bool:
    """Return whether a selector below the node selects series of any name."""
    return any(
        not selector.alternatives and all(matcher.label != "__name__" for matcher in selector.matchers)
        for selector in selectors_of(node)
    )


def _suits_counters(node: Node) -> bool:
    if isinstance(node, Aggregation):
        # The number of series does not depend on their values.
        return node.operator in {"count", "group"}
    return isinstance(node, Call) and node.function in _FOR_COUNTERS
