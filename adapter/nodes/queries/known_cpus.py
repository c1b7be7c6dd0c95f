"""How many CPUs each exporter has in whole answers, so that a partial one is not taken for the load of all of them.

While a store is away, the rates of some CPUs of a node may be missing, and the mean of the others looks like that of
all. Numbers are kept in memory alone: as long as none is known, as after a start beside a store that is away, a partial
answer counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.queries.answer_rows import AnswerRows, SeriesLayout
    from adapter.nodes.queries.sample_grid_joining import MappedRows


class KnownCpus:
    """The numbers of CPUs in the newest whole answers. Not thread-safe."""

    def __init__(self) -> None:
        self._layout: SeriesLayout | None = None
        self._cpus: Floats = np.empty(0)
        """The number of each row of the layout; NaN where it is not known."""
        self._found: tuple[SeriesLayout, Floats] | None = None
        """The numbers that were last looked up; the layout stays the same for as long as the same stores answer."""

    def note(self, layout: SeriesLayout, rows: AnswerRows) -> None:
        """Take the numbers of a whole answer about the newest steps; a row without any keeps its former one.

        An answer without rows tells nothing: a querier of Thanos that has just started knows no stores yet.
        """
        if not len(rows.cpus):
            return
        cpus = _last_numbers(rows.cpus)
        known = np.where(np.isnan(cpus), self.of(layout), cpus)
        self._layout, self._cpus, self._found = layout, known, (layout, known)

    def of(self, layout: SeriesLayout) -> Floats:
        """Return the number of each row of an answer; NaN where it is not known."""
        if self._layout is None:
            return np.full(len(layout.labels), np.nan)
        if self._found is None or self._found[0] is not layout:
            self._found = layout, np.append(self._cpus, np.nan)[self._layout.places_of(layout)]
        return self._found[1]


def _last_numbers(values: Floats) -> Floats:
    """Return the last number of each row; NaN for a row without any."""
    last = values.shape[1] - 1 - np.argmax(~np.isnan(values[:, ::-1]), axis=1)
    found: Floats = values[np.arange(len(values)), last]
    return found


def cpus_of_nodes(mapped: MappedRows, nodes: tuple[ClusterNode, ...] | None) -> Floats:
    """Return the number of CPUs that the Node object of each row states; NaN where it is not known."""
    capacities = {node.name: node.capacity.get("cpu") for node in nodes or ()}
    stated = [capacities.get(name) for name in mapped.nodes]
    return np.array([np.nan if one is None else one.nanos / 1e9 for one in stated] + [np.nan])[mapped.node_of]


def without_parts(rows: AnswerRows, times: range, known: Floats, stated: Floats) -> AnswerRows:
    """Return the rows of a partial answer, for steps at `times`, without the steps that lack CPUs.

    A row that lacks some at its end is as if its last samples were missing. `known` are the numbers of whole answers,
    and `stated` those of the Node objects: a machine may have got fewer since the last whole answer.
    """
    if np.isnan(rows.cpus).all():
        # The query does not ask for numbers, or the server does not answer them.
        return rows
    # Compared with NaN, nothing is less or more: what is not known lacks nothing, and a row without a number lacks all.
    least = np.where(stated < known, stated, known)
    lacks = ~(rows.cpus >= least[:, None]) & ~np.isnan(least)[:, None]
    if not lacks.any():
        return rows
    # If samples are behind, the last steps have no rate of any CPU.
    are_missing = ~(_last_numbers(rows.cpus) >= least) & ~np.isnan(least)
    values = np.where(lacks, np.nan, rows.values)
    last_whole = np.fmax.reduce(np.where(np.isnan(values), np.nan, times), axis=1, initial=np.nan)
    return replace(
        rows,
        values=values,
        newest=np.where(are_missing, np.minimum(rows.newest, last_whole), rows.newest),
        advancing=np.where(are_missing, np.nan, rows.advancing),
        reset_at=np.where(are_missing, np.nan, rows.reset_at),
        first_known=np.where(are_missing, np.nan, rows.first_known),
    )
