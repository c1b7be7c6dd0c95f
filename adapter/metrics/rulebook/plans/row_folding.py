"""Folds the selected rows of a wide answer as the exact query's aggregation would have.

NaN and infinities are kept: the exact query would have summed them, too, and the reader of the result decides what they
mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from adapter.metrics.rulebook.requests import Fold, Row


def fold_rows(fold: Fold, rows: Iterable[Row]) -> list[Row]:
    """Return the requester's answer from the rows that were selected for it."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        # An empty label is the same as an absent one.
        groups.setdefault(tuple(row.labels.get(label, "") for label in fold.by), []).append(row.value)
    if not groups and fold.default is not None:
        return [Row({}, fold.default)]
    combine = _COMBINE[fold.operator]
    return [
        Row({label: value for label, value in zip(fold.by, group, strict=True) if value}, combine(values))
        for group, values in groups.items()
    ]


def _sum(values: Sequence[float]) -> float:
    # Not math.fsum, which raises an error for infinities of both signs, although their sum is NaN.
    return sum(values)


def _smallest(values: Sequence[float]) -> float:
    """Return the smallest value as PromQL's `min` does: NaN only if all values are NaN."""
    return min((value for value in values if not math.isnan(value)), default=math.nan)


def _largest(values: Sequence[float]) -> float:
    return max((value for value in values if not math.isnan(value)), default=math.nan)


_COMBINE: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": _sum,
    "count": _sum,
    "min": _smallest,
    "max": _largest,
}
