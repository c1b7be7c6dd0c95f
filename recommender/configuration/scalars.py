"""Single values of the configuration file. Each function raises DocumentError, which says what to write instead."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapter.documents.tree import DocumentError, ScalarNode, shortened
from adapter.objects.durations import DurationError, parse_go_duration
from adapter.objects.names import is_namespace_name, is_object_name
from adapter.service.server.addresses import parse_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.documents.tree import Node

_WHOLE: Final = re.compile(r"[0-9]{1,10}")
_PERCENTAGE: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)%")


def text(node: Node) -> str:
    """Return a text that is not empty."""
    value = node.text()
    if not value.strip():
        raise DocumentError(node.problem("the text is empty", "write a value, or remove the key"))
    return value


def path(node: Node) -> Path:
    """Return a path."""
    return Path(text(node))


def boolean(node: Node) -> bool:
    """Return true or false."""
    return node.boolean()


def whole(node: Node, *, least: int) -> int:
    """Return a whole number that is at least `least`."""
    value = node.text() if isinstance(node, ScalarNode) and not node.is_null else ""
    if not _WHOLE.fullmatch(value) or int(value) < least:
        raise DocumentError(node.problem(f"expected a whole number, found {node.kind}", f"write {least} or more"))
    return int(value)


def duration(least_seconds: float, largest_seconds: float = math.inf) -> Callable[[Node], float]:
    """Return the reader of a duration such as `10s`, in seconds, within these limits."""

    def read(node: Node) -> float:
        try:
            seconds = parse_go_duration(node.text())
        except DurationError as error:
            message = f"{shortened(node.text())!r} is not a duration"
            raise DocumentError(node.problem(message, "write numbers with units, such as 10s or 1m30s")) from error
        if not least_seconds <= seconds <= largest_seconds:
            limits = f"{least_seconds:g} s" + ("" if math.isinf(largest_seconds) else f" to {largest_seconds:g} s")
            fix = f"write {limits}" + (" or more" if math.isinf(largest_seconds) else "")
            raise DocumentError(node.problem(f"{node.text()} is out of range", fix))
        return seconds

    return read


def ratio(value: str) -> float | None:
    """Return a percentage such as `5%` as a ratio; None if the text is not one."""
    found = _PERCENTAGE.fullmatch(value)
    return None if found is None else float(Fraction(found[1]) / 100)


def address(node: Node) -> str:
    """Return `HOST:PORT` or `:PORT`, checked."""
    try:
        parse_address(node.text())
    except ValueError as error:
        message = f"{shortened(node.text())!r} is not an address"
        raise DocumentError(node.problem(message, "write HOST:PORT, or :PORT for all interfaces")) from error
    return node.text()


def label(node: Node) -> str:
    """Return a name that can be that of a namespace: a DNS-1123 label."""
    value = node.text()
    if not is_namespace_name(value):
        fix = "write up to 63 lower-case letters, digits and -, with a letter or digit at both ends"
        raise DocumentError(node.problem(f"{shortened(value)!r} is not a DNS-1123 label", fix))
    return value


def object_name(node: Node) -> str:
    """Return the name of an object."""
    value = node.text()
    if not is_object_name(value):
        raise DocumentError(node.problem(f"{shortened(value)!r} is not the name of an object", "write its name"))
    return value


def texts(node: Node) -> tuple[str, ...]:
    """Return a list of texts."""
    return tuple(text(item) for item in node.sequence())
