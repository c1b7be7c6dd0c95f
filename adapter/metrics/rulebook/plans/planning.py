"""Turns a metric into its plans, and a plan into the query that is sent.

The proof compares two texts, so both are rendered with made-up values: twice, with values of different form and number,
because a template may treat one object differently from several.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.objects.selectors import EVERYTHING, Operator, Requirement, Selector
from adapter.foundation.promql.quoting import is_label_name
from adapter.foundation.promql.tree import Aggregation, Node, TreeMatcher, all_nodes
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.metrics.rulebook.model import Api, Metric, Plan, PlanKind
from adapter.metrics.rulebook.plans.external import foldable, with_keys
from adapter.metrics.rulebook.plans.proof import prove_filterable
from adapter.metrics.rulebook.plans.sample_age import times_of
from adapter.metrics.rulebook.plans.widening import NotProvenError, Widening, quote_labels
from adapter.metrics.rulebook.query_rendering import exact_query, namespace_query, wide_query
from adapter.metrics.rulebook.requests import Asked, PlannedQuery
from adapter.metrics.rulebook.templates.matchers import (
    RenderError,
    names_matcher,
    presence_matcher,
    selector_matchers,
    value_matcher,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.metrics.rulebook.templates import matchers as rendered

# Values that no rule contains by chance. The second set has several names, so that both `=` and `=~` are proven.
_NAMESPACES = ("madeupspace", "x7q")
_NAMES = (("madeupname",), ("z9k", "anothermadeupname"))
_VALUES = (("madeupvalue",), ("v4w", "yetanothermadeupvalue"))


def plan_of(metric: Metric, selector_keys: frozenset[str] = frozenset()) -> Plan:
    """Return which plans are proven for a metric, and why the others are not.

    `selector_keys` are the labels of the requester's metric selector. The plan of an external metric depends on them,
    since its wider forms omit the selector. If the rule limits the age of its samples, a plan must also be proven for
    the query for their times.
    """
    own, times = _plan_of(metric, selector_keys), times_of(metric)
    if times is None:
        return own
    other = _plan_of(times, selector_keys)
    reasons = {
        kind: f"{reason}, in the query for the times of its samples" for kind, reason in other.reasons.items()
    } | own.reasons
    return Plan(own.proven & other.proven, reasons)


def _plan_of(metric: Metric, selector_keys: frozenset[str]) -> Plan:
    reasons = {PlanKind.WIDE: _refusal(metric, PlanKind.WIDE, selector_keys)}
    if _row_namespace(metric, PlanKind.WIDE) is None:
        reasons[PlanKind.NAMESPACE] = reasons[PlanKind.WIDE] or "no namespace restricts the query"
    else:
        reasons[PlanKind.NAMESPACE] = _refusal(metric, PlanKind.NAMESPACE, selector_keys)
    refused = {kind: reason for kind, reason in reasons.items() if reason is not None}
    return Plan(frozenset(PlanKind) - refused.keys(), refused)


def planned_query(metric: Metric, asked: Asked, kind: PlanKind) -> PlannedQuery:
    """Return the query to send for this plan, which must be proven, and how its rows are assigned to requesters.

    Raises RenderError if the request cannot be expressed as a query.
    """
    if kind is PlanKind.EXACT:
        return _planned_for_objects(metric, exact_query(metric, asked), kind, None)
    namespace_label = _row_namespace(metric, kind)
    text = _wider_text(metric, asked, kind)
    if metric.resource is not None:
        return _planned_for_objects(metric, text, kind, namespace_label)
    keys = _keys(metric, kind, asked.selector.keys)
    try:
        found = foldable(parse_query(text), keys)
        edited = with_keys(text, found, keys) if found else text
    except (NotProvenError, UnreadableQueryError) as e:
        raise RenderError(f"{metric.qualified} has no {kind} plan for the selector '{asked.selector}': {e}") from e
    return PlannedQuery(edited, kind, None, namespace_label, fold=found.fold if found else None)


def _planned_for_objects(metric: Metric, text: str, kind: PlanKind, namespace_label: str | None) -> PlannedQuery:
    is_usage = metric.rule.api is Api.RESOURCE
    return PlannedQuery(text, kind, metric.object_label, namespace_label, metric.container_label, is_usage)


def _refusal(metric: Metric, kind: PlanKind, selector_keys: frozenset[str]) -> str | None:
    """Return why the plan is not proven; None if it is."""
    if kind is PlanKind.WIDE and metric.rule.confinement is not None:
        return "the rule is confined to one namespace"
    if not metric.rule.metrics_query.is_plain:
        return (
            "the template computes with values of the request, so what holds for test values may not hold for real ones"
        )
    try:
        for number in range(len(_NAMESPACES)):
            _Trial.made_up(metric, selector_keys, number).prove(metric, kind)
    except (NotProvenError, RenderError) as e:
        return str(e)
    except UnreadableQueryError as e:
        return f"the query cannot be analysed: {e}"
    return None


@dataclass(frozen=True, slots=True)
class _Trial:
    """One made-up request."""

    asked: Asked
    namespace: str

    @classmethod
    def made_up(cls, metric: Metric, keys: frozenset[str], number: int) -> _Trial:
        operator = (Operator.EQUALS, Operator.IN)[number]
        selector = Selector(tuple(Requirement(key, operator, _VALUES[number]) for key in keys))
        names = () if metric.resource is None else _NAMES[number]
        namespace = _NAMESPACES[number]
        return cls(Asked(namespace if metric.namespaced else None, names, selector), namespace)

    def prove(self, metric: Metric, kind: PlanKind) -> None:
        """Raise NotProvenError, with the reason, unless the wider answer contains the exact answer to this request."""
        exact = parse_query(exact_query(metric, self.asked))
        text = _wider_text(metric, self.asked, kind)
        wider = parse_query(text)
        if not _keys(metric, kind, self.asked.selector.keys) and exact == wider:
            return
        widening = self._widening(metric, kind)
        found = foldable(wider, widening.keys) if metric.resource is None else None
        if found is None:
            _require_quoted(wider, frozenset() if metric.resource else self.asked.selector.keys)
            prove_filterable(exact, wider, widening)
            return
        narrow = foldable(exact, widening.keys)
        if narrow is None or narrow.fold != found.fold:
            raise NotProvenError("the request changes the outermost aggregation")
        prove_filterable(narrow.aggregation.expression, found.aggregation.expression, widening)
        with_keys(text, found, widening.keys)

    def _widening(self, metric: Metric, kind: PlanKind) -> Widening:
        external = metric.resource is None
        return Widening(
            keys=_keys(metric, kind, self.asked.selector.keys),
            exact=_as_parsed(self._exact_matchers(metric)),
            wider=_as_parsed(self._wider_matchers(metric, kind)),
            gained=_row_namespace(metric, kind) if not external else None,
            # A row without labels is data, so `onNoData` does not apply to it.
            bare_rows_count=external or metric.rule.policy.no_data_value is not None,
        )

    def _exact_matchers(self, metric: Metric) -> Iterable[rendered.Matcher]:
        if metric.resource is None:
            yield from selector_matchers(self.asked.selector)
        if (label := _row_namespace(metric, PlanKind.WIDE)) is not None:
            yield value_matcher(label, self.namespace)
        if metric.object_label is not None:
            yield names_matcher(metric.object_label, self.asked.names)

    def _wider_matchers(self, metric: Metric, kind: PlanKind) -> Iterable[rendered.Matcher]:
        if (label := _row_namespace(metric, PlanKind.WIDE)) is not None:
            yield presence_matcher(label) if kind is PlanKind.WIDE else value_matcher(label, self.namespace)
        if metric.object_label is not None:
            yield presence_matcher(metric.object_label)


def _require_quoted(wider: Node, selector_keys: frozenset[str]) -> None:
    """Raise NotProvenError unless the wider query contains each key of the selector that needs quotes.

    A server that does not understand them refuses the exact query, and must refuse the wider one as well.
    """
    listed = frozenset[str]().union(*(each.labels for each in all_nodes(wider) if isinstance(each, Aggregation)))
    missing = [key for key in selector_keys - listed if not is_label_name(key)]
    if missing:
        raise NotProvenError(
            f"only the exact query contains {quote_labels(missing)}, whose quotes not every server understands: "
            "a server that does not must refuse the request"
        )


def _wider_text(metric: Metric, asked: Asked, kind: PlanKind) -> str:
    """Return the wider query of the template, which for external metrics lacks the selector."""
    selector = EVERYTHING if metric.resource is None else asked.selector
    if kind is PlanKind.NAMESPACE:
        return namespace_query(metric, asked.namespace or "", selector)
    return wide_query(metric, selector)


def _row_namespace(metric: Metric, kind: PlanKind) -> str | None:
    """Return the label that contains the namespace of this plan's rows; None if the rows need none."""
    return metric.namespace_label if kind is PlanKind.WIDE and metric.namespaced else None


def _keys(metric: Metric, kind: PlanKind, selector_keys: frozenset[str]) -> frozenset[str]:
    """Return the labels by which the wider answer is filtered."""
    labels = (_row_namespace(metric, kind), metric.object_label)
    own = frozenset(label for label in labels if label is not None)
    return own | selector_keys if metric.resource is None else own


def _as_parsed(matchers: Iterable[rendered.Matcher]) -> tuple[TreeMatcher, ...]:
    return tuple(TreeMatcher(matcher.label, matcher.sign, matcher.value) for matcher in matchers)
