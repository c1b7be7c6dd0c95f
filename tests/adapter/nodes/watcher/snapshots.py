from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.model.loads import (
    AVG,
    MAX,
    P95,
    STATS,
    STD,
    VERDICTS,
    WINDOWS_SECONDS,
    LoadResource,
    LoadSnapshot,
    NodeVerdict,
    ResourceLoad,
    UnmappedSeries,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.nodes.model.arrays import Floats

NAN = float("nan")
WINDOW_END = 1_700_000_900.0
ASSEMBLED_AT = 1_700_000_905.4
OWN_WINDOW = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class Measured:
    """The load of one node and resource, equal in all windows."""

    average: float
    deviation: float = NAN
    taken_from: Sequence[int] = OWN_WINDOW
    verdict: NodeVerdict = NodeVerdict.FRESH
    is_estimated: bool = False
    sampled_at: float = WINDOW_END - 3


NOTHING = Measured(NAN, taken_from=(-1, -1, -1), verdict=NodeVerdict.MISSING, sampled_at=NAN)


def load_of(resource: LoadResource, found: Sequence[Measured]) -> ResourceLoad:
    stats: Floats = np.full((len(WINDOWS_SECONDS), len(STATS), len(found)), np.nan)
    stats[:, AVG] = [each.average for each in found]
    stats[:, STD] = [each.deviation for each in found]
    stats[:, P95] = stats[:, MAX] = [each.average for each in found]
    taken_from = np.array([each.taken_from for each in found], dtype=np.int8).reshape(-1, 3).T
    long = [np.where(taken_from[0] < 0, -1, window) for window in range(3, len(WINDOWS_SECONDS))]
    return ResourceLoad(
        resource=resource,
        stats=stats,
        taken_from=np.vstack([taken_from, *long]).astype(np.int8),
        verdicts=np.array([VERDICTS.index(each.verdict) for each in found], dtype=np.int8),
        sampled_at=np.array([each.sampled_at for each in found], dtype=np.float64),
        is_estimated=np.array([each.is_estimated for each in found], dtype=np.bool_),
        resolution_seconds=np.full(len(found), 15.0),
    )


def snapshot_of(
    nodes: Mapping[str, Mapping[LoadResource, Measured]],
    *,
    from_file: bool = False,
    unmapped: tuple[UnmappedSeries, ...] = (),
    query_failures: Mapping[LoadResource, str] | None = None,
) -> LoadSnapshot:
    """Return the load of these nodes; a resource that is not given for a node is missing there."""
    names = tuple(sorted(nodes))
    resources = [each for each in LoadResource if any(each in node for node in nodes.values())]
    return LoadSnapshot(
        nodes=names,
        resources={each: load_of(each, [nodes[name].get(each, NOTHING) for name in names]) for each in resources},
        assembled_at=ASSEMBLED_AT,
        window_end=WINDOW_END,
        from_file=from_file,
        unmapped=unmapped,
        index={name: number for number, name in enumerate(names)},
        query_failures=query_failures or {},
    )
