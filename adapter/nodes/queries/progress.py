"""The results of a resource's queries so far: which steps are answered, by whom nodes are measured, the last layout."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.nodes.queries.plan import MOST_POINTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.nodes.names.mapping import SeriesMapper
    from adapter.nodes.names.refused import RefusedSeries
    from adapter.nodes.queries.claiming import Claimants, ExporterRegister
    from adapter.nodes.queries.joining import MappedRows
    from adapter.nodes.queries.rows import SeriesLayout


@dataclass(slots=True)
class ResourceProgress:
    """The results of a resource's queries so far."""

    covered: set[int] = field(default_factory=set)
    """Steps that have been answered, Unix seconds."""
    most_steps: int = MOST_POINTS
    """Limit that follows from queries that were too large."""
    asked: int = 0
    judged_until: int = 0
    """Unix seconds of the newest step whose exporters were judged."""
    unmapped: tuple[Mapping[str, str], ...] = ()
    refused: tuple[RefusedSeries, ...] = ()
    register: ExporterRegister | None = None
    """By whom nodes are measured; None before the first answer."""
    layout: SeriesLayout | None = None
    """Of the last answer."""
    mapped: tuple[SeriesLayout, SeriesMapper, MappedRows, Claimants] | None = None
    """The rows of the last answer, and what they follow from."""
