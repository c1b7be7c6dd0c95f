"""Single values of the scheduling configuration. Each function raises DocumentError, which says what to write."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from adapter.documents.tree import DocumentError, ScalarNode, nearest, shortened
from adapter.nodes.model.loads import LoadResource
from adapter.objects.names import label_key_problem
from adapter.objects.quantities import QuantityError, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapter.documents.tree import Node

LOAD_RESOURCES: Final = tuple(str(resource) for resource in LoadResource)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,3})?")
_WHOLE: Final = re.compile(r"[0-9]{1,9}")
_PERCENTAGE: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)%")
_LABEL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def text(node: Node) -> str:
    """Return a text that is not empty."""
    value = node.text()
    if not value.strip():
        raise DocumentError(node.problem("the text is empty", "write a value, or remove the key"))
    return value


def boolean(node: Node) -> bool:
    """Return true or false."""
    return node.boolean()


def number(least: float, largest: float = math.inf) -> Callable[[Node], float]:
    """Return the reader of a number from `least` to `largest`. Trimaran writes some of them in quotes (`"1.5"`)."""

    def read(node: Node) -> float:
        fix = f"write a number from {least:g}" + ("" if math.isinf(largest) else f" to {largest:g}")
        written = node.value if isinstance(node, ScalarNode) and not node.null else ""
        if not _NUMBER.fullmatch(written):
            raise DocumentError(node.problem(f"expected a number, found {node.kind}", fix))
        value = float(written)
        if not least <= value <= largest or math.isinf(value):
            raise DocumentError(node.problem(f"{shortened(written)} is out of range", fix))
        return value

    return read


def whole(least: int, largest: int) -> Callable[[Node], int]:
    """Return the reader of a whole number within limits."""

    def read(node: Node) -> int:
        written = node.value if isinstance(node, ScalarNode) and not node.null else ""
        fix = f"write a whole number from {least} to {largest}"
        if not _WHOLE.fullmatch(written):
            raise DocumentError(node.problem(f"expected a whole number, found {node.kind}", fix))
        if not least <= int(written) <= largest:
            raise DocumentError(node.problem(f"{written} is out of range", fix))
        return int(written)

    return read


def percentage(largest_percent: int) -> Callable[[Node], float]:
    """Return the reader of a percentage such as `80%`, above 0% and up to a limit, as a ratio."""

    def read(node: Node) -> float:
        written = node.text()
        found = _PERCENTAGE.fullmatch(written)
        if found is None or not 0 < Fraction(found[1]) <= largest_percent:
            message = f"{shortened(written)!r} is not a percentage above 0% and up to {largest_percent}%"
            raise DocumentError(node.problem(message, "write a percentage, such as 80%"))
        return float(Fraction(found[1]) / 100)

    return read


def one_of(names: Iterable[str]) -> Callable[[Node], str]:
    """Return the reader of one of these names."""
    known = tuple(map(str, names))

    def read(node: Node) -> str:
        written = node.text()
        if written not in known:
            meant = nearest(written, known)
            fix = f"did you mean {meant!r}?" if meant else f"write one of {', '.join(known)}"
            raise DocumentError(node.problem(f"{shortened(written)!r} is not known", fix))
        return written

    return read


def load_resource(node: Node) -> LoadResource:
    """Return a resource whose utilisation is measured."""
    return LoadResource(one_of(LOAD_RESOURCES)(node))


def label_key(node: Node) -> str:
    """Return the key of a Kubernetes label or annotation, or the name of a resource, which has the same form."""
    value = text(node)
    wrong = label_key_problem(value)
    if wrong is not None:
        fix = "write a name with an optional prefix, such as example.com/pool"
        raise DocumentError(node.problem(f"{shortened(value)!r} is not such a name: {wrong}", fix))
    return value


def matcher_label(node: Node) -> str:
    """Return the name of a label of Prometheus, for a matcher."""
    value = node.text()
    if not _LABEL_NAME.fullmatch(value) or value == "__name__":
        message = f"{shortened(value)!r} is not a label that can be matched here"
        raise DocumentError(node.problem(message, "write the name of a label, such as cluster"))
    return value


def cpu_milli(node: Node) -> int:
    """Return an amount of CPU such as `500m` or `2`, in milli."""
    written = node.text()
    try:
        milli = parse_quantity(written).milli_value()
    except QuantityError as error:
        message = f"{shortened(written)!r} is not an amount of CPU"
        raise DocumentError(node.problem(message, "write a quantity, such as 500m or 2")) from error
    if not 0 <= milli <= 10**9:
        raise DocumentError(node.problem(f"{shortened(written)} is out of range", "write 0 or more, such as 1000m"))
    return milli
