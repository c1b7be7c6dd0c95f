"""Selects series of an application by the name of their metric and, if needed, by matchers for labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from adapter.readiness.labels import LabelPair, parse_braces

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True, slots=True)
class SeriesChoice:
    """The name of a metric, and matchers for its labels. A missing label counts as empty, as in PromQL."""

    text: str
    """The choice as the user wrote it."""
    name: str
    matchers: tuple[LabelPair, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether a series of this metric with these labels is chosen."""
        return all(
            (labels.get(matcher.name, "") == matcher.value) == (matcher.operator == "=") for matcher in self.matchers
        )


def parse_series_choice(text: str) -> SeriesChoice:
    """Parse a choice such as `NAME` or `NAME{label="value", other!="value"}`. Raises ValueError."""
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
