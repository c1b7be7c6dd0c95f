"""Reads the total of one metric, line by line, from text in the format of Prometheus or OpenMetrics.

Only lines of that metric are parsed, so an error in another metric does no harm. Sources: "Exposition formats" in the
documentation of Prometheus (text format 0.0.4) and OpenMetrics 1.0.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from adapter.readiness.labels import parse_braces

if TYPE_CHECKING:
    from adapter.readiness.selector import SeriesChoice

LONGEST_QUOTE = 80
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_TIME = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


class MissingMetricError(ValueError):
    """No series matches the choice."""


class MetricValueError(ValueError):
    """The value of a series is not a number of connections, or the line is malformed."""


class SeriesTotal:
    """The sum over the chosen series, to which lines are added in the order of the document."""

    def __init__(self, choice: SeriesChoice) -> None:
        self._choice = choice
        self._name = choice.name.encode()
        self._seen: set[frozenset[tuple[str, str]]] = set()
        self._named = 0
        self._total = 0.0

    def add(self, line: bytes) -> None:
        """Add one line, given without its line feed. Lines of other metrics are ignored.

        Raises MetricValueError if a line of this metric is malformed or if its series has already been added.
        """
        sample = line.lstrip(b" \t")
        if not sample.startswith(self._name) or sample[len(self._name) : len(self._name) + 1].strip(b" \t{"):
            return
        text = sample.decode("utf-8", "replace").rstrip("\r")
        try:
            labels, value = _sample(text, len(self._choice.name))
        except ValueError as error:
            raise MetricValueError(f"{_quote_text(text)}: {error}") from None
        self._named += 1
        if not self._choice.matches(labels):
            return
        identity = frozenset(labels.items())
        if identity in self._seen:
            raise MetricValueError(f"{_quote_text(text)}: the same series occurs twice")
        self._seen.add(identity)
        self._total += value

    def total(self) -> float:
        """Return the sum; raises MissingMetricError if no series matched."""
        if not self._seen:
            other = f": none of the {self._named} series of that name matches" if self._named else ""
            raise MissingMetricError(f"the answer has no series {self._choice.text}{other}")
        return self._total


def _sample(text: str, end_of_name: int) -> tuple[dict[str, str], float]:
    """Return the labels and the value of a line. Raises ValueError if the line is malformed."""
    position = end_of_name
    while text[position : position + 1] in {" ", "\t"}:
        position += 1
    labels: dict[str, str] = {}
    if text.startswith("{", position):
        pairs, position = parse_braces(text, position)
        labels = {pair.name: pair.value for pair in pairs}
        if len(labels) < len(pairs) or any(pair.operator != "=" for pair in pairs):
            raise ValueError("its labels are malformed")
    words = text[position:].split()
    if not words:
        raise ValueError("it has no value")
    if len(words) > 1 and words[1] != "#" and not _is_time_and_exemplar(words[1:]):
        raise ValueError("something else than a time follows the value")
    return labels, _count(words[0])


def _is_time_and_exemplar(words: list[str]) -> bool:
    return _TIME.fullmatch(words[0]) is not None and (len(words) == 1 or words[1] == "#")


def _count(word: str) -> float:
    """Return a number of connections; raises ValueError for NaN, infinity and negative numbers."""
    if _NUMBER.fullmatch(word) is None:
        raise ValueError(f"{_quote_text(word)} is not a number of connections")
    value = float(word)
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{_quote_text(word)} is not a number of connections")
    return value


def _quote_text(text: str) -> str:
    """Return a text in quotes for a message, on one line and cut to a limited length."""
    return repr(text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…")
