"""A rule that `init` has tried on Prometheus: what it returned, and what `check` found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.exporters.recognition import RecognisedMetric
    from adapter.foundation.objects.names import ObjectName


@dataclass(frozen=True, slots=True)
class TriedRule:
    """A rule with the answer to its query."""

    metric: RecognisedMetric
    values: Mapping[ObjectName, float]
    """The value of each object; empty for external metrics."""
    value: float | None = None
    """The value of an external metric; None if it had no value."""
    notes: tuple[str, ...] = ()
    """The findings of `check`, and why a counter has no value yet."""
