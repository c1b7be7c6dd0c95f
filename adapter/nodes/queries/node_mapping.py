"""The mapper of series to the current nodes, kept until a node, its addresses or the survey changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapter.nodes.names.mapping import SeriesMapper, series_mapper
from adapter.nodes.names.matching import naming_of

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.nodes.model.scheduling_settings import NodeMatch
    from adapter.nodes.queries.series_survey import Survey


@dataclass(frozen=True, slots=True, eq=False)
class NodeMapping:
    """The current nodes, and the mapper of series to them."""

    mapper: SeriesMapper
    nodes: tuple[ClusterNode, ...] | None
    """Node objects; None if they are not known."""


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """A mapping, and what it was made from."""

    mapping: NodeMapping
    texts: tuple[object, ...] | None
    """Everything by which series are mapped to these nodes."""
    survey: Survey
    """The survey that the mapping was made from. A mapper caches its look-ups, so the next survey ends its use."""


class KeptMapping:
    """The last mapping. Used by one thread at a time."""

    def __init__(self, match: NodeMatch) -> None:
        """`match` says how series are matched to nodes."""
        self._match = match
        self._last: _Kept | None = None

    def of(self, nodes: tuple[ClusterNode, ...] | None, survey: Survey) -> NodeMapping:
        """Return the mapping to these nodes; the last mapper is reused if neither they nor the survey have changed."""
        last = self._last
        if last is not None and last.survey is survey:
            if last.mapping.nodes is nodes:
                return last.mapping
            if last.texts == _texts_of(nodes):
                mapping = NodeMapping(last.mapping.mapper, nodes)
                self._last = replace(last, mapping=mapping)
                return mapping
        mapping = NodeMapping(series_mapper(nodes, self._match, survey.unames, survey.mixed), nodes)
        self._last = _Kept(mapping, _texts_of(nodes), survey)
        return mapping


def _texts_of(nodes: tuple[ClusterNode, ...] | None) -> tuple[object, ...] | None:
    return None if nodes is None else tuple(map(naming_of, nodes))
