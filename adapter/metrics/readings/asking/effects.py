"""Effects of a change of the state behind the lock, noted while it is held and carried out after its release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from adapter.metrics.readings.asking.demand import DemandEntry
    from adapter.metrics.readings.asking.queries import Query, QueryGroup, Reading
    from adapter.metrics.readings.asking.refused_plans import Place
    from adapter.metrics.rulebook.model import Rule


class Remark(NamedTuple):
    """A line for the log."""

    level: int
    text: str


@dataclass(slots=True)
class Change:
    """The effects of one change."""

    begun: list[Query] = field(default_factory=list)
    """Queries to launch."""
    trials: list[Trial] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    of_rules: list[tuple[Rule, str, str]] = field(default_factory=list)
    """Remarks, each as its rule, kind and text; a rule's remarks of one kind are logged once."""
    gone: list[Reading] = field(default_factory=list)
    """Readings that are no longer needed: the caller frees them."""


class Trial(NamedTuple):
    """A wider plan that was refused, to be compared with the exact query of one request."""

    entry: DemandEntry
    group: QueryGroup
    place: Place
    wider: Query
