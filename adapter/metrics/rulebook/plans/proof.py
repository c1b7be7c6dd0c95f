"""The proof that a wider query's answer, filtered, is the exact query's answer.

Both forms are parsed and walked together. A pair of nodes is *constant* when they are the same, and *filterable* when
restricting the request's matchers to some values of the keys gives the same series as filtering the result by those
values. The query is proven if its root is filterable. Anything else is refused with the reason, and the exact query is
sent instead.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from adapter.foundation.promql.tree import (
    Aggregation,
    Binary,
    Call,
    Number,
    SelectorNode,
    TextNode,
    Wrapper,
    without_parentheses,
)
from adapter.metrics.rulebook.plans.functions import (
    ACROSS_BUCKETS,
    GROUP_BY_GROUP,
    LABEL_WRITERS,
    REFUSED_AGGREGATIONS,
    REFUSED_FUNCTIONS,
    SERIES_BY_SERIES,
    labels_read,
)
from adapter.metrics.rulebook.plans.operator_matching import binary_verdict
from adapter.metrics.rulebook.plans.widening import NotProvenError, ProofVerdict, Widening, filterable, quote_labels

if TYPE_CHECKING:
    from adapter.foundation.promql.tree import Node, TreeMatcher


def prove_filterable(exact: Node, wider: Node, widening: Widening) -> None:
    """Raise NotProvenError, with the reason, unless filtering the wider tree's result gives the exact one's."""
    if "__name__" in widening.keys:
        raise NotProvenError("most functions drop the metric's name, so answers cannot be distinguished by it")
    if _verdict(exact, wider, widening) is ProofVerdict.CONSTANT:
        raise NotProvenError("the query does not use `.LabelMatchers`, so nothing in it is restricted to the request")


def _verdict(exact: Node, wider: Node, widening: Widening) -> ProofVerdict:
    if exact == wider:
        return ProofVerdict.CONSTANT
    match exact, wider:
        case SelectorNode(), SelectorNode():
            return _selector(exact, wider, widening)
        case Wrapper(), Wrapper() if exact.kind == wider.kind:
            return _verdict(exact.expression, wider.expression, widening)
        case Call(), Call() if exact.function == wider.function:
            return _call(exact, wider, widening)
        case Aggregation(), Aggregation() if exact.operator == wider.operator:
            return _aggregation(exact, wider, widening)
        case Binary(), Binary():
            left = _verdict(exact.left, wider.left, widening)
            right = _verdict(exact.right, wider.right, widening)
            return binary_verdict(exact, wider, left, right, widening)
        case ((Number() | TextNode()), (Number() | TextNode())):
            raise NotProvenError(f"a literal depends on the request: {_literal(exact)}, {_literal(wider)}")
        case _:
            raise NotProvenError("the request changes the shape of the query")


def _literal(node: Number | TextNode) -> str:
    return node.text if isinstance(node, Number) else f'"{node.value}"'


def _selector(exact: SelectorNode, wider: SelectorNode, widening: Widening) -> ProofVerdict:
    if (exact.alternatives, exact.timing) != (wider.alternatives, wider.timing):
        raise NotProvenError("a range, an offset or an `or` between matchers depends on the request")
    left_over = _remaining_matchers(exact.matchers, widening.exact), _remaining_matchers(wider.matchers, widening.wider)
    if exact.alternatives or None in left_over or left_over[0] != left_over[1]:
        shown = ", ".join(map(str, exact.matchers))
        raise NotProvenError(f"a selector uses the request in another way than through `.LabelMatchers`: {{{shown}}}")
    return ProofVerdict.FILTERABLE


def _remaining_matchers(
    matchers: tuple[TreeMatcher, ...], taken: tuple[TreeMatcher, ...]
) -> Counter[TreeMatcher] | None:
    """Return the matchers without the taken ones, with their counts; None if a taken one is missing."""
    rest = Counter(matchers)
    rest.subtract(taken)
    return None if any(count < 0 for count in rest.values()) else +rest


def _call(exact: Call, wider: Call, widening: Widening) -> ProofVerdict:
    name = exact.function
    if len(exact.arguments) != len(wider.arguments):
        raise NotProvenError(f"the arguments of `{name}` depend on the request")
    pairs = zip(exact.arguments, wider.arguments, strict=True)
    verdicts = {_verdict(*pair, widening) for pair in pairs} - {ProofVerdict.CONSTANT}
    # Only one argument of a function can be series; a number computed from series is refused earlier, at `scalar`.
    verdict = verdicts.pop()
    if name in SERIES_BY_SERIES:
        return verdict
    if name in ACROSS_BUCKETS:
        if "le" in widening.keys:
            raise NotProvenError(
                f"`{name}` combines the buckets of a histogram, so answers cannot be distinguished by `le`"
            )
        return verdict
    if name in LABEL_WRITERS:
        _check_writer(exact, verdict, widening)
        return verdict
    reason = REFUSED_FUNCTIONS.get(name, "is not known to work series by series")
    raise NotProvenError(f"`{name}` {reason}")


def _check_writer(call: Call, verdict: ProofVerdict, widening: Widening) -> None:
    arguments = [without_parentheses(argument) for argument in call.arguments[1:]]
    strings = tuple(argument.value for argument in arguments if isinstance(argument, TextNode))
    if len(strings) < len(arguments):
        raise NotProvenError(f"the labels that `{call.function}` reads and writes are not spelled out")
    if strings[0] in widening.keys:
        raise NotProvenError(
            f"`{call.function}` writes the label {quote_labels(strings[:1])}, which distinguishes the answers"
        )
    if not verdict.has_gained and widening.gained in labels_read(call.function, strings):
        raise NotProvenError(
            f"`{call.function}` reads {quote_labels([widening.gained or ''])}, "
            "which the exact query no longer has there"
        )


def _aggregation(exact: Aggregation, wider: Aggregation, widening: Widening) -> ProofVerdict:
    if exact.parameter != wider.parameter:
        raise NotProvenError(f"the parameter of `{exact.operator}` depends on the request")
    inner = _verdict(exact.expression, wider.expression, widening)
    if inner is ProofVerdict.CONSTANT:
        raise NotProvenError(
            f"`{exact.operator}` groups series that the request does not restrict, by labels that `.GroupBy` changes"
        )
    if exact.operator not in GROUP_BY_GROUP:
        reason = REFUSED_AGGREGATIONS.get(exact.operator, "is not known to work group by group")
        raise NotProvenError(f"`{exact.operator}` {reason}")
    return _prove_grouping(exact, wider, inner, widening)


def _prove_grouping(exact: Aggregation, wider: Aggregation, inner: ProofVerdict, widening: Widening) -> ProofVerdict:
    """Return the verdict on an aggregation of filterable series, from its label list."""
    lists_differ = exact.without != wider.without or exact.labels != wider.labels
    if wider.without:
        if dropped := wider.labels & widening.keys:
            raise NotProvenError(f"`{_list_of(wider)}` drops {quote_labels(dropped)}")
        if lists_differ:
            raise NotProvenError(f"the request changes the labels of `{_list_of(exact)}`")
        return inner
    if dropped := widening.keys - wider.labels:
        raise NotProvenError(f"`{_list_of(wider)}` drops {quote_labels(dropped)}")
    if lists_differ and (exact.without or exact.labels != wider.labels - {widening.gained}):
        raise NotProvenError(f"the request changes the labels of `{_list_of(exact)}`")
    return filterable(has_gained=inner.has_gained and (widening.gained is None or widening.gained in exact.labels))


def _list_of(aggregation: Aggregation) -> str:
    keyword = "without" if aggregation.without else "by"
    return f"{aggregation.operator} {keyword} ({', '.join(sorted(aggregation.labels))})"
