"""Determines how far back a query looks."""

from __future__ import annotations

import re

from adapter.foundation.promql.tree import Node, SelectorNode, Wrapper, operands_of

LOOK_BACK_SECONDS = 300.0
"""Prometheus's default `--query.lookback-delta`: a series keeps the value of its last sample for this long."""

_RANGE = re.compile(r"\[([0-9.]+)")
_OFFSET = re.compile(r" offset ([0-9.]+)")


def oldest_sample(node: Node) -> float:
    """Return the age of the oldest sample that a query may use, in seconds, with the default look-back."""
    return _longest(node, LOOK_BACK_SECONDS)


def longest_range(node: Node) -> float:
    """Return how far back a query looks in seconds, without the look-back of instant selectors; 0 if not at all."""
    return _longest(node, 0.0)


def _longest(node: Node, bare: float) -> float:
    """Return the longest reach of the node in seconds; `bare` is the range of a selector that has none."""
    match node:
        case SelectorNode():
            has_range, own = _own_reach(node.timing)
            return own if has_range else own + bare
        case Wrapper():
            return _own_reach(node.kind)[1] + _longest(node.expression, bare)
        case _:
            return max((_longest(part, bare) for part in operands_of(node)), default=0.0)


def _own_reach(timing: str) -> tuple[bool, float]:
    """Return whether the node has a range, and the sum of its range and offset in seconds."""
    found, offset = _RANGE.search(timing), _OFFSET.search(timing)
    return found is not None, sum(float(part[1]) for part in (found, offset) if part is not None)
