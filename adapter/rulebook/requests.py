"""A request for values, and the query that answers it: the values between readings and the rulebook (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.objects.selectors import Selector
    from adapter.rulebook.model import PlanKind


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for a metric's values, without the values' objects resolved."""

    namespace: str | None
    """None for root-scoped objects."""
    names: tuple[str, ...]
    """Names of the objects, ascending; only exact queries depend on them. Empty for external metrics."""
    selector: Selector
    """The metric's selector (not the objects')."""


@dataclass(frozen=True, slots=True)
class Row:
    """One series of an answer: labels, and the value as Prometheus gave it (NaN and Inf included)."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A query to send, and how its rows are assigned to askers."""

    text: str
    kind: PlanKind
    object_label: str | None
    """Custom metrics: rows are assigned to objects by this label."""
    namespace_label: str | None
    """Rows are assigned to namespaces by this label; None where the query itself is restricted or nothing is."""
    container_label: str | None = None
    """Resource metrics of pods: rows are assigned to the containers of an object by this label."""
    non_negative: bool = False
    """Whether values below zero are none: nothing uses less than nothing."""
    fold: Fold | None = None
    """External metrics: how an asker's answer is folded from the rows of a wide query; None: rows are only filtered."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The outermost aggregation of a wide external query, applied to the asker's rows: sums and counts add up."""

    operator: str
    """`sum`, `count`, `min` or `max`, as the query spells it; counts are added up."""
    by: tuple[str, ...]
    """Labels that the asker's rows keep: the exact query's own `by` list."""
    default: float | None = None
    """Value when no row matches (`… or vector(c)`); None: no row then."""
