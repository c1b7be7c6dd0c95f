"""Turns label selectors and node selectors of the API into their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.facts.pod_selectors import OPERATORS, selector_requirements
from adapter.foundation.cluster.values.constraints import NodeSelectorTerm
from adapter.foundation.objects.requirements import Operator, Requirement, SelectorError
from adapter.foundation.objects.selectors import EVERYTHING, Selector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.forms.pods import LabelSelectorForm
    from adapter.foundation.cluster.forms.scheduling_pods import NodeExpressionForm, NodeSelectorForm, NodeTermForm

_NODE_OPERATORS: Final = {**OPERATORS, "Gt": Operator.GREATER_THAN, "Lt": Operator.LESS_THAN}
_NODE_NAME: Final = "metadata.name"


def label_selector_of(
    where: str, form: LabelSelectorForm | None, further: Iterable[Requirement] = ()
) -> Selector | None:
    """Return the selector with the further requirements; None, which selects nothing, stays None. Raises FactError."""
    if form is None:
        return None
    try:
        requirements = tuple(dict.fromkeys((*selector_requirements(form), *further)))
    except SelectorError as error:
        raise FactError(f"{where}: {error}") from error
    return Selector(requirements) if requirements else EVERYTHING


def node_terms_of(where: str, form: NodeSelectorForm | None) -> tuple[NodeSelectorTerm, ...] | None:
    """Return the terms of a node selector, of which one must match; None if there is no selector. Raises FactError."""
    if form is None:
        return None
    return tuple(
        _node_term(f"{where}.nodeSelectorTerms[{number}]", term) for number, term in enumerate(form.terms or ())
    )


def _node_term(where: str, form: NodeTermForm) -> NodeSelectorTerm:
    name_in: tuple[str, ...] | None = None
    name_not_in: list[str] = []
    for field in form.fields or ():
        if field.key != _NODE_NAME:
            raise FactError(f"{where}.matchFields: the field {field.key!r} is not known: use {_NODE_NAME}")
        values = tuple(field.values or ())
        if field.operator not in {"In", "NotIn"} or len(values) != 1:
            raise FactError(f"{where}.matchFields: {_NODE_NAME} needs the operator In or NotIn and one value")
        if field.operator == "NotIn":
            name_not_in += values
        else:
            name_in = values if name_in is None else tuple(name for name in name_in if name in values)
    expressions = tuple(_requirement(f"{where}.matchExpressions", one) for one in form.expressions or ())
    return NodeSelectorTerm(expressions, name_in, tuple(name_not_in))


def _requirement(where: str, form: NodeExpressionForm) -> Requirement:
    operator = _NODE_OPERATORS.get(form.operator)
    if operator is None:
        known = ", ".join(_NODE_OPERATORS)
        raise FactError(f"{where}: the operator {form.operator!r} is not known: use one of {known}")
    try:
        return Requirement(form.key, operator, tuple(form.values or ()))
    except SelectorError as error:
        raise FactError(f"{where}: {error}") from error
