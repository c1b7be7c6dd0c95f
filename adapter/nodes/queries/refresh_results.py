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
    """Series whose node is not known, by `instance`; then refused series, and series that no query reads."""
    failures: Mapping[LoadResource, str] = field(default_factory=dict)
    """Why the newest samples of a resource are missing, one sentence each."""
    queries: int = 0
    """Number of queries that were sent."""
    seconds: float = 0.0
    """Duration of the refresh."""
    measured_by: tuple[MeasuringJob, ...] = ()
    """The jobs from which the load of nodes is taken."""
    moved: frozenset[str] = frozenset()
    """Nodes whose measuring source or machine changed in this refresh."""
    moves: frozenset[tuple[Source, Source]] = frozenset()
    """The former and the new source of the nodes that moved between sources in this refresh."""
    without_series: frozenset[LoadResource] = frozenset()
    """Resources that were not requested, since Prometheus has no series of them and there are no samples."""
    is_answered: bool = True
    """Whether a query for samples was answered, even in part; as in the last refresh if this one sent none."""
