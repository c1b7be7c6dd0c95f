"""The results of a refresh."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.nodes.exporters.claims import Source
    from adapter.nodes.model.loads import LoadResource, MeasuringJob, UnmappedSeries
    from adapter.nodes.model.samples import SampleSet


@dataclass(frozen=True, slots=True, eq=False)
class RefreshResult:
    """The samples after a refresh. A resource whose query failed keeps the samples that it had."""

    samples: SampleSet
    unmapped: tuple[UnmappedSeries, ...] = ()
    """Series whose node is not known, by `instance`; then those that are refused."""
    failures: Mapping[LoadResource, str] = field(default_factory=dict)
    """Why the newest samples of a resource are missing, one sentence each."""
    queries: int = 0
    """Number of queries asked."""
    seconds: float = 0.0
    """How long it took."""
    measured_by: tuple[MeasuringJob, ...] = ()
    """From which jobs the load of nodes is taken."""
    moved: frozenset[str] = frozenset()
    """Nodes that another source measures since this refresh."""
    moves: frozenset[tuple[Source, Source]] = frozenset()
    """From which source to which nodes have moved in this refresh."""
