"""A request for values, and the query that answers it: the types that readings and the rulebook exchange (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.objects.selectors import Selector
    from adapter.metrics.rulebook.model import PlanKind


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for a metric's values, before its objects are resolved."""

    namespace: str | None
    """Namespace of the request; None for cluster-scoped objects."""
    names: tuple[str, ...]
    """Names of the objects in ascending order, which only exact queries use; empty for external metrics."""
    selector: Selector
    """Selector of the metric, not of the objects."""


@dataclass(frozen=True, slots=True)
class Row:
    """One series of an answer: its labels, and its value as Prometheus returned it, including NaN and Inf."""

    labels: Mapping[str, str] = field(hash=False)
    value: float


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A query to send, and how its rows are assigned to requesters."""

    text: str
    kind: PlanKind
    object_label: str | None
    """Label by which rows are assigned to objects; only for custom metrics."""
    namespace_label: str | None
    """Label by which rows are assigned to namespaces; None if the query is restricted to one, or needs none."""
    container_label: str | None = None
    """Label by which rows are assigned to containers; only for resource metrics of pods."""
    non_negative: bool = False
    """Whether negative values are dropped, because nothing can use less than nothing."""
    fold: Fold | None = None
    """How a requester's answer is computed from the rows of a wide external query; None if rows are only filtered."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The outermost aggregation of a wide external query, applied to the requester's rows: sums and counts add up."""

    operator: str
    """`sum`, `count`, `min` or `max`, as in the query; counts are added up."""
    by: tuple[str, ...]
    """Labels that the requester's rows keep: the `by` list of the exact query."""
    default: float | None = None
    """Value if no row matches (`… or vector(c)`); None if the answer then has no row."""
