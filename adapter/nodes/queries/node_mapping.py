"""The mapper of series to the current nodes, kept until a node, its addresses or the survey changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from adapter.nodes.names.mapping import SeriesMapper, series_mapper, unmapped_series
from adapter.nodes.names.matching import naming_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.nodes.model.loads import LoadResource, UnmappedSeries
    from adapter.nodes.model.scheduling_settings import NodeMatch
    from adapter.nodes.queries.series_survey import Survey


@dataclass(frozen=True, slots=True, eq=False)
class NodeMapping:
    """The current nodes, and the mapper of series to them."""

    mapper: SeriesMapper
    nodes: tuple[ClusterNode, ...] | None
    """Node objects; None if they are not known."""
    gone: Callable[[], SeriesMapper]
    """Makes the mapper of series to nodes that had a Node object some minutes ago."""

    def unmapped(self, found: Mapping[LoadResource, Sequence[Mapping[str, str]]]) -> tuple[UnmappedSeries, ...]:
        """Return which of these series belong to no node, not even to one that is gone, each with the repair."""
        if not any(found.values()):
            return ()
        gone = self.gone()
        of_none = {resource: [one for one in labels if not gone.node_of(one)] for resource, labels in found.items()}
        return unmapped_series(of_none, self.mapper)


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """A mapper, and what it was made from."""

    mapper: SeriesMapper
    texts: tuple[object, ...] | None
    """Everything by which series are mapped to these nodes."""
    survey: Survey
    """The survey that it was made from. A mapper caches its look-ups, so the next survey ends its use."""


class KeptMapping:
    """The last mapper. Used by one thread at a time."""

    def __init__(self, match: NodeMatch) -> None:
        """`match` says how series are matched to nodes."""
        self._match = match
        self._last: _Kept | None = None

    def of(self, nodes: tuple[ClusterNode, ...] | None, gone: tuple[ClusterNode, ...], survey: Survey) -> NodeMapping:
        """Return the mapping to these nodes; the last mapper is reused if neither they nor the survey have changed.

        `gone` are the last Node objects of nodes that lost theirs some minutes ago.
        """
        texts, last = _texts_of(nodes), self._last
        if last is None or last.survey is not survey or last.texts != texts:
            last = self._last = _Kept(self._mapper(nodes, survey), texts, survey)
        return NodeMapping(last.mapper, nodes, partial(self._mapper, gone, survey))

    def _mapper(self, nodes: tuple[ClusterNode, ...] | None, survey: Survey) -> SeriesMapper:
        return series_mapper(nodes, self._match, survey.unames, survey.mixed)


def _texts_of(nodes: tuple[ClusterNode, ...] | None) -> tuple[object, ...] | None:
    return None if nodes is None else tuple(map(naming_of, nodes))
