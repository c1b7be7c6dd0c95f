"""The one expression that the query endpoint answers, in PromQL's syntax (pure).

tidewatch_node_utilization_ratio{resource="cpu", window="15m", stat="avg"}
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from adapter.nodes.model.loads import STATS, WINDOW_NAMES, LoadResource

METRIC: Final = "tidewatch_node_utilization_ratio"

_VALUES: Final = {"resource": tuple(map(str, LoadResource)), "window": WINDOW_NAMES, "stat": STATS}
_LONGEST: Final = 1000
_SPACE: Final = r"[ \t\r\n]*"
_MATCHER: Final = rf"""{_SPACE}([a-z]+){_SPACE}={_SPACE}(?:"([a-z0-9]*)"|'([a-z0-9]*)'){_SPACE}"""
_SHAPE: Final = re.compile(rf"{_SPACE}{METRIC}{_SPACE}\{{({_MATCHER}(?:,{_MATCHER}){{2}}),?{_SPACE}\}}{_SPACE}")
_ONE_MATCHER: Final = re.compile(_MATCHER)


class QueryExpressionError(ValueError):
    """An expression that is not answered here; the message says which one is."""


@dataclass(frozen=True, slots=True)
class UtilizationSelector:
    """Which number of each node is asked for."""

    resource: LoadResource
    window: int
    """An index of `WINDOW_NAMES`."""
    stat: int
    """An index of `STATS`."""


def parse_query(text: str) -> UtilizationSelector:
    """Return what the expression selects. Raises QueryExpressionError."""
    shape = _SHAPE.fullmatch(text) if len(text) <= _LONGEST else None
    if shape is None:
        raise QueryExpressionError(
            f'only {METRIC}{{resource="…", window="…", stat="…"}} is answered here, with these three matchers'
        )
    found = {name: double or single for name, double, single in _ONE_MATCHER.findall(shape.group(1))}
    for name, values in _VALUES.items():
        if found.get(name) not in values:
            raise QueryExpressionError(f"the label {name} must be matched with = once: one of {', '.join(values)}")
    return UtilizationSelector(
        LoadResource(found["resource"]), WINDOW_NAMES.index(found["window"]), STATS.index(found["stat"])
    )
