"""Determines which series of an application's metrics count: a name, and matchers for labels if needed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from adapter.readiness.labels import LabelPair, parse_braces

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True, slots=True)
class SeriesChoice:
    """A metric's name and matchers; a missing label counts as an empty one, as in PromQL."""

    text: str
    """As the user wrote it."""
    name: str
    matchers: tuple[LabelPair, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether a series of this name counts."""
        return all(
            (labels.get(matcher.name, "") == matcher.value) == (matcher.operator == "=") for matcher in self.matchers
        )


def parse_series_choice(text: str) -> SeriesChoice:
    """Return the choice of `NAME` or `NAME{label="value", other!="value"}`; raises ValueError."""
    written = text.strip()
    name = _NAME.match(written)
    if name is None:
        raise ValueError(f"{text!r} does not begin with the name of a metric")
    rest = written[name.end() :].lstrip(" \t")
    if not rest:
        return SeriesChoice(written, name[0], ())
    if not rest.startswith("{"):
        raise ValueError(f'{text!r} is not a metric: write NAME or NAME{{label="value"}}')
    try:
        matchers, end = parse_braces(rest, 0)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a metric: in the braces, {error}") from None
    if rest[end:].strip():
        raise ValueError(f"{text!r} is not a metric: there is something after the braces")
    for matcher in matchers:
        if matcher.operator not in {"=", "!="}:
            raise ValueError(f"{text!r}: the operator {matcher.operator} is not supported: write = or !=")
    return SeriesChoice(written, name[0], matchers)
