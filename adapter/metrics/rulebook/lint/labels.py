"""Determines whether the series that a query returns still have a label."""

from __future__ import annotations

from adapter.foundation.promql.tree import (
    Aggregation,
    Binary,
    Call,
    Cardinality,
    Matching,
    Node,
    SelectorNode,
    TextNode,
    Wrapper,
    is_scalar,
)

_LABEL_MAKERS = frozenset({"label_replace", "label_join"})
_CHOOSERS = frozenset({"topk", "bottomk", "limitk", "limit_ratio"})
"""Aggregations that return some of their series unchanged."""
_WITHOUT_LABELS = frozenset({"vector", "scalar", "time", "absent", "absent_over_time", "pi"})


def keeps_label(node: Node, label: str) -> bool:
    """Return whether the result may have a label that the selected series have; False only if it certainly cannot."""
    match node:
        case SelectorNode():
            return True
        case Wrapper():
            return keeps_label(node.expression, label)
        case Aggregation():
            return _aggregation_keeps(node, label)
        case Call():
            return _call_keeps(node, label)
        case Binary():
            return _binary_keeps(node, label)
        case _:
            return False


def _aggregation_keeps(node: Aggregation, label: str) -> bool:
    if node.operator in _CHOOSERS:
        return keeps_label(node.expression, label)
    if node.operator == "count_values" and isinstance(node.parameter, TextNode) and node.parameter.value == label:
        return True
    return (label in node.labels) != node.without and keeps_label(node.expression, label)


def _call_keeps(call: Call, label: str) -> bool:
    if call.function in _WITHOUT_LABELS:
        return False
    if call.function in _LABEL_MAKERS and len(call.arguments) > 1:
        made = call.arguments[1]
        if isinstance(made, TextNode) and made.value == label:
            return True
    return any(keeps_label(argument, label) for argument in call.arguments)


def _binary_keeps(node: Binary, label: str) -> bool:
    if node.matching is None:
        vector = node.right if is_scalar(node.left) else node.left
        return keeps_label(vector, label)
    matching = node.matching
    if matching.cardinality is Cardinality.MANY_TO_MANY:
        # `or` may return series of either side; `and` and `unless` return series of the left side.
        sides = (node.left, node.right) if node.operator == "or" else (node.left,)
        return any(keeps_label(side, label) for side in sides)
    return _match_keeps(node, matching, label)


def _match_keeps(node: Binary, matching: Matching, label: str) -> bool:
    if matching.cardinality is Cardinality.ONE_TO_ONE:
        return matching.compares(label) and keeps_label(node.left, label) and keeps_label(node.right, label)
    many, one = (node.left, node.right) if matching.cardinality is Cardinality.MANY_TO_ONE else (node.right, node.left)
    return keeps_label(many, label) or (label in matching.include and keeps_label(one, label))
