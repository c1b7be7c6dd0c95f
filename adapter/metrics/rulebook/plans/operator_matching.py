"""Determines whether the result of an operator between two expressions is filterable: the rules of vector matching.

Two series match when they agree in the labels that are compared. The result is filterable if partners always agree in
the keys, or if the constant side is only looked up. The exact form must also find the same partners as the wider one,
although it may have lost the namespace label on one side.
"""

from __future__ import annotations

from adapter.foundation.promql.tree import Binary, Call, Cardinality, Matching, Node, without_parentheses
from adapter.metrics.rulebook.plans.widening import NotProvenError, ProofVerdict, Widening, filterable, quote_labels

_SET_OPERATORS = frozenset({"and", "or", "unless"})


def binary_verdict(
    exact: Binary, wider: Binary, left: ProofVerdict, right: ProofVerdict, widening: Widening
) -> ProofVerdict:
    """Return the verdict on the operator's result, from the verdicts on its sides. Raises NotProvenError."""
    operator, narrow, wide = exact.operator, exact.matching, wider.matching
    if operator != wider.operator or exact.returns_bool != wider.returns_bool:
        raise NotProvenError(f"the operator `{operator}` depends on the request")
    if narrow is None or wide is None:
        return right if left is ProofVerdict.CONSTANT else left
    if narrow.fill or wide.fill:
        raise NotProvenError(f"`fill` of `{operator}` makes values for series without a partner")
    if ProofVerdict.CONSTANT not in {left, right}:
        _check_lists(operator, narrow, wide, widening)
        _check_partners(operator, narrow, wide, widening, uneven=left.has_gained != right.has_gained)
        return filterable(has_gained=_result_has_gained(narrow, left, right, widening))
    if narrow != wide:
        raise NotProvenError(
            f"`{operator}` matches series that the request does not restrict, by labels that `.GroupBy` changes"
        )
    if left is right:
        raise NotProvenError(f"the sides of `{operator}` differ between the forms")
    return _with_constant(exact, narrow, left, right, widening)


def _check_lists(operator: str, narrow: Matching, wide: Matching, widening: Widening) -> None:
    """Check that both forms match in the same way, except for the label that `.GroupBy` adds to an `on`."""
    others_equal = (narrow.cardinality, narrow.on, narrow.include) == (wide.cardinality, wide.on, wide.include)
    gained = {widening.gained} if wide.on and widening.gained else set()
    if not others_equal or narrow.labels not in {wide.labels, wide.labels - gained}:
        raise NotProvenError(f"the label lists of `{operator}` differ in more than `on` may gain by `.GroupBy`")


def _check_partners(operator: str, narrow: Matching, wide: Matching, widening: Widening, *, uneven: bool) -> None:
    """Check that two filterable sides find the same partners in both forms; `uneven` if one lost the gained label."""
    if missing := _not_compared(wide, widening):
        raise NotProvenError(
            f"`{operator}` matches series of different {quote_labels(missing)}: {_matching_text(wide)}"
        )
    if uneven and (operator == "or" or _compares_gained(narrow, widening)):
        raise NotProvenError(
            f"one side of `{operator}` has lost {quote_labels([widening.gained or ''])} in the exact query"
        )


def _result_has_gained(narrow: Matching, left: ProofVerdict, right: ProofVerdict, widening: Widening) -> bool:
    """Return whether the exact result has the gained label, if both sides are filterable."""
    gained = widening.gained
    if gained is None:
        return True
    if narrow.cardinality is Cardinality.ONE_TO_ONE and not narrow.compares(gained):
        return False
    # A gained label in an include list is compared too (PromQL forbids it beside `on`), so both sides agree in it.
    many = right if narrow.cardinality is Cardinality.ONE_TO_MANY else left
    return many.has_gained


def _with_constant(
    exact: Binary, matching: Matching, left: ProofVerdict, right: ProofVerdict, widening: Widening
) -> ProofVerdict:
    """Return the verdict on an operator between a filterable side and a constant one."""
    side = right if left is ProofVerdict.CONSTANT else left
    if exact.operator == "or":
        return _or_constant(side, widening, constant=exact.right if side is left else None)
    if _compares_gained(matching, widening) and not side.has_gained:
        raise NotProvenError(
            f"`{exact.operator}` compares {quote_labels([widening.gained or ''])}, "
            "which the exact query no longer has there"
        )
    if exact.operator in _SET_OPERATORS:
        if side is right:
            raise NotProvenError(f"the left side of `{exact.operator}` has series that the request does not restrict")
        return side
    return _join_verdict(exact, matching, side, widening, many_is_left=side is left)


def _or_constant(side: ProofVerdict, widening: Widening, constant: Node | None) -> ProofVerdict:
    """Return the verdict on `F or C`: only a `vector()` on the right is harmless, since its row has no labels."""
    call = None if constant is None else without_parentheses(constant)
    if not (isinstance(call, Call) and call.function == "vector"):
        raise NotProvenError("`or` adds series that the request does not restrict")
    if widening.bare_rows_count:
        raise NotProvenError("`or vector(…)` adds a row without labels, unless it follows an outermost sum")
    return side


def _join_verdict(
    exact: Binary, matching: Matching, side: ProofVerdict, widening: Widening, *, many_is_left: bool
) -> ProofVerdict:
    """Return the verdict on arithmetic and comparisons; `many_is_left` if the filterable side is the left one."""
    own = Cardinality.MANY_TO_ONE if many_is_left else Cardinality.ONE_TO_MANY
    other = Cardinality.ONE_TO_MANY if many_is_left else Cardinality.MANY_TO_ONE
    taken = matching.include & widening.keys
    if taken:
        if matching.cardinality is other and widening.keys <= matching.include:
            return side
        raise NotProvenError(f"`{matching.cardinality.value}` overwrites {quote_labels(taken)}")
    missing = _not_compared(matching, widening)
    if not missing or matching.cardinality is own:
        return side
    raise NotProvenError(f"`{exact.operator}` does not match by {quote_labels(missing)}: {_matching_text(matching)}")


def _compares_gained(matching: Matching, widening: Widening) -> bool:
    return widening.gained is not None and matching.compares(widening.gained)


def _not_compared(matching: Matching, widening: Widening) -> frozenset[str]:
    return frozenset(key for key in widening.keys if not matching.compares(key))


def _matching_text(matching: Matching) -> str:
    return f"{'on' if matching.on else 'ignoring'} ({', '.join(sorted(matching.labels))})"
