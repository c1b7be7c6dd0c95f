"""Reads values of a YAML tree and collects what is wrong with them, so that one pass reports everything."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from adapter.documents.tree import ScalarNode, WrongKindError, nearest, shortened, unknown_key
from adapter.objects.durations import DurationError, format_go_duration, parse_go_duration, parse_prometheus_duration
from adapter.objects.names import is_namespace_name, is_object_name, label_key_problem
from adapter.objects.quantities import Quantity, QuantityError, parse_quantity
from adapter.objects.selectors import SelectorError, parse_selector
from recommender.reading.cron import CronError, parse_cron
from recommender.reading.numbers import ValueTextError, count_of, ratio_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from adapter.documents.tree import DocumentProblem, MappingNode, Node

T = TypeVar("T")

_DAY_SECONDS: Final = 86_400
_PERCENT: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)%")


class ValueReader:
    """Reads nodes. A value that is absent or wrong is None; what is wrong is added to the problems."""

    def __init__(self, problems: list[DocumentProblem]) -> None:
        self.problems = problems

    def problem(self, node: Node, message: str, fix: str) -> None:
        """Add a problem at a node."""
        self.problems.append(node.problem(message, fix))

    def mapping(self, node: Node | None, known: Collection[str] | None = None) -> MappingNode | None:
        """Return the node as a mapping; keys that are not known are problems."""
        mapping = None if node is None else self._read(node.mapping)
        for entry in mapping.unknown(known) if mapping and known is not None else ():
            self.problems.append(unknown_key(entry, known or ()))
        return mapping

    def sequence(self, node: Node | None) -> tuple[Node, ...]:
        """Return the items of a list."""
        return () if node is None else self._read(node.sequence) or ()

    def text(self, node: Node | None) -> str | None:
        """Return a text."""
        return None if node is None else self._read(node.text)

    def flag(self, node: Node | None) -> bool | None:
        """Return a boolean."""
        return None if node is None else self._read(node.boolean)

    def ratio(self, node: Node | None) -> float | None:
        """Return a number, which may have a fraction."""
        return self._number(node, ratio_of)

    def count(self, node: Node | None) -> int | None:
        """Return a whole number."""
        return self._number(node, count_of)

    def count_within(self, mapping: MappingNode, key: str, least: int, most: int) -> int | None:
        """Return the whole number of a key, within limits."""
        node = mapping.get(key)
        count = self.count(node)
        if node is None or count is None or least <= count <= most:
            return count
        self.problem(node, f"`{key}` is {count}", f"write a whole number from {least} to {most}")
        return None

    def query(self, node: Node | None) -> str | None:
        """Return a query in PromQL. Only Prometheus knows whether it can read it."""
        text = self.text(node)
        if node is not None and text is not None and not text.strip():
            self.problem(node, "the query is empty", "write the PromQL of a query")
            return None
        return text

    def require(self, mapping: MappingNode, path: str, examples: Mapping[str, str], known: Collection[str]) -> None:
        """Add a problem for each key of `examples`, which have an example of each value, that is missing."""
        # A misspelt key is reported with the key that is probably meant.
        misspelt = {nearest(entry.name, known) for entry in mapping.unknown(known)}
        for key, example in examples.items():
            if mapping.get(key) is None and key not in misspelt:
                self.problem(mapping, f"`{path}{key}` is missing", f"write {key}: {example}")

    def selector(self, node: Node | None) -> str | None:
        """Return the canonical text of a label selector."""
        selector = self._parsed(node, parse_selector, "write a label selector as for kubectl, such as tier=dns")
        return None if selector is None else selector.text

    def namespace(self, node: Node | None) -> str | None:
        """Return the name of a namespace."""
        text = self.text(node)
        if node is None or text is None or is_namespace_name(text):
            return text
        self.problem(node, f"{shortened(text)!r} is no name of a namespace", "write lower-case letters, digits and -")
        return None

    def object_name(self, node: Node | None) -> str | None:
        """Return the name of an object."""
        text = self.text(node)
        if node is None or text is None or is_object_name(text):
            return text
        self.problem(node, f"{shortened(text)!r} is no name of an object", "write its name")
        return None

    def taint_key(self, node: Node) -> str | None:
        """Return the key of a taint."""
        text = self.text(node)
        wrong = None if text is None else label_key_problem(text)
        if wrong is None:
            return text
        self.problem(node, f"{shortened(text or '')!r} is no key of a taint: {wrong}", "write the key alone")
        return None

    def seconds(self, node: Node | None, longest: float = math.inf) -> float | None:
        """Return a duration in seconds, from 0 to the longest that is allowed."""
        seconds = self._parsed(node, parse_go_duration, "write numbers with units, such as 30s or 1m30s")
        if node is not None and seconds is not None and not 0 <= seconds <= longest:
            limits = "0s or more" if math.isinf(longest) else f"0s to {format_go_duration(longest)}"
            self.problem(node, f"the duration {format_go_duration(seconds)} is out of range", f"write {limits}")
        return seconds

    def duration(self, node: Node | None, shortest: float, longest: float) -> float | None:
        """Return a duration in seconds, within limits. It may have days (`14d`), which Go does not know."""
        seconds = self._parsed(node, _go_or_prometheus_seconds, "write numbers with units, such as 90s, 1h30m or 14d")
        if node is not None and seconds is not None and not shortest <= seconds <= longest:
            message = f"the duration {_with_days(seconds)} is out of range"
            self.problem(node, message, f"write {_with_days(shortest)} to {_with_days(longest)}")
            return None
        return seconds

    def percentage(self, node: Node | None, *, below: int = 100) -> float | None:
        """Return a percentage below a limit, in percent, as a ratio."""
        text = self.text(node)
        if node is None or text is None:
            return None
        shape = _PERCENT.fullmatch(text)
        if shape is None or Fraction(shape[1]) >= below:
            message = f"{shortened(text)!r} is no percentage from 0% to {below - 1}%"
            self.problem(node, message, "write a percentage, such as 5%")
            return None
        return float(Fraction(shape[1]) / 100)

    def cron(self, node: Node | None) -> str:
        """Return a cron expression; empty if it is absent or wrong."""
        text = self.text(node)
        if node is None or text is None:
            return ""
        try:
            parse_cron(text)
        except CronError as error:
            self.problem(node, str(error), error.fix)
        return text

    def timezone(self, node: Node | None) -> str:
        """Return the IANA name of a time zone; empty if it is absent or wrong."""
        text = self.text(node)
        if node is None or text is None:
            return ""
        try:
            ZoneInfo(text)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            # A folder such as `Europe` is an OSError, a path that leads elsewhere a ValueError.
            fix = "write its IANA name, such as Europe/Berlin or UTC"
            self.problem(node, f"{shortened(text)!r} is not a time zone", fix)
        return text

    def quantity(self, node: Node | None) -> Quantity | None:
        """Return an amount of a resource, 0 or more."""
        amount = self._parsed(node, parse_quantity, "write a quantity, such as 100m or 64Mi")
        if node is not None and amount is not None and amount.nanos < 0:
            self.problem(node, f"the quantity {amount} is negative", "write 0 or more")
        return amount

    def _parsed(self, node: Node | None, parse: Callable[[str], T], fix: str) -> T | None:
        text = self.text(node)
        if node is None or text is None:
            return None
        try:
            return parse(text)
        except (DurationError, QuantityError, SelectorError) as e:
            about = "the selector cannot be read: " if isinstance(e, SelectorError) else ""
            # These errors end with a repair of their own, which is less specific.
            reason = str(e).partition(": write ")[0]
            self.problem(node, shortened(f"{about}{reason}", 160), fix)
            return None

    def _number(self, node: Node | None, parse: Callable[[str], T]) -> T | None:
        if node is None:
            return None
        try:
            return parse(node.value if isinstance(node, ScalarNode) and node.plain else "")
        except ValueTextError as e:
            self.problems.append(node.wrong_kind(str(e)).problem)
            return None

    def _read(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except WrongKindError as e:
            self.problems.append(e.problem)
            return None


def _go_or_prometheus_seconds(text: str) -> float:
    try:
        return parse_go_duration(text)
    except DurationError as error:
        try:
            return parse_prometheus_duration(text)
        except DurationError:
            raise error from None


def _with_days(seconds: float) -> str:
    days, rest = divmod(seconds, _DAY_SECONDS)
    return f"{days:.0f}d" if days > 0 and not rest else format_go_duration(seconds)
