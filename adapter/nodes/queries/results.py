"""What a refresh returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.nodes.model.loads import LoadResource, UnmappedSeries
    from adapter.nodes.model.samples import SampleSet


@dataclass(frozen=True, slots=True, eq=False)
class RefreshResult:
    """The samples after a refresh. A resource whose query failed keeps the samples that it had."""

    samples: SampleSet
    unmapped: tuple[UnmappedSeries, ...] = ()
    """Series whose node is not known, by `instance`."""
    failures: Mapping[LoadResource, str] = field(default_factory=dict)
    """Why the newest samples of a resource are missing, one sentence each."""
    queries: int = 0
    """Number of queries asked."""
    seconds: float = 0.0
    """How long it took."""
