"""The result of a policy, and the arithmetic that the policies share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np

from adapter.nodes.model.usage import USAGE_NAMES, UsageName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.columns import NodeColumns

    Rows: TypeAlias = NDArray[np.intp]

T = TypeVar("T")

MAX_SCORE: Final = 100.0
MIDDLE_SCORE: Final = 50.0
"""The score of every node while nothing is known about any."""


@dataclass(frozen=True, slots=True, eq=False)
class PolicyScores:
    """The scores of one policy for the nodes of a request, in the request's order."""

    values: Floats
    """The scores, 0..100; NaN for a node that is unknown or lacks metrics that the policy needs."""
    reason: Callable[[int], str]
    """Returns in one sentence why the node at a position of the request has its score."""


def column_of_rows(columns: Mapping[T, Floats], name: T, rows: Rows) -> Floats:
    """Return a column for the rows; zeros if no node has the resource."""
    column = columns.get(name)
    return np.zeros(len(rows)) if column is None else column.take(rows)


def load_taken(loads: Mapping[T, Floats], name: T, rows: Rows) -> Floats:
    """Return the ratios of a resource or use for the rows; NaN if `loads` does not have this name."""
    column = loads.get(name)
    return np.full(len(rows), np.nan) if column is None else column.take(rows)


def usage_source(columns: NodeColumns, name: UsageName, row: int) -> UsageName:
    """Return the use that the number of this name shows: that of a shorter window while its own window is unknown."""
    sources = columns.usage_from.get(name)
    return name if sources is None or sources[row] < 0 else USAGE_NAMES[sources[row]]


def round_half_up(values: Floats) -> Floats:
    """Return the values rounded half up, as Go's `math.Round` does for values that are not negative. NaN stays NaN."""
    halves: Floats = np.floor(values + 0.5)
    return halves


def clamp_scores(values: Floats, high: float) -> Floats:
    """Return the values between 0 and `high`; NaN stays NaN."""
    result: Floats = np.minimum(np.maximum(values, 0.0), high)
    return result


def share(amounts: Floats, capacity: Floats) -> Floats:
    """Return amounts divided by capacities; 0 if there is no capacity, NaN where the amount is unknown."""
    has_capacity = capacity > 0.0
    if has_capacity.all():
        return amounts / capacity
    result: Floats = np.where(has_capacity, amounts, amounts * 0.0) / np.where(has_capacity, capacity, 1.0)
    return result


def percent_text(ratio: float) -> str:
    """Return a ratio as a percentage."""
    return "unknown" if np.isnan(ratio) else f"{100.0 * ratio:.0f}%"
