"""The reserve of a replayed cluster (`headroom` and `schedules`): its size, and whether nodes have room for it.

The parts of the reserve are equal, and fit on any node without taints. So the sum of the nodes' room shows whether all
parts have a place, and no decision is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adapter.foundation.cluster.values.constraints import NO_CONSTRAINTS
from recommender.kinds.cluster_size.future.headroom import (
    Headroom,
    headroom_at,
    headroom_of,
    is_placeable,
    largest_offers,
    pods_of_headroom,
)
from recommender.kinds.cluster_size.predicates.node_info import new_node_info
from recommender.kinds.cluster_size.predicates.node_only_filters import StaticFilter
from recommender.replay.cluster.fleet import PODS, NodeFleet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.replay.cluster.replay_facts import Scene
    from recommender.replay.cluster.scheduler import Scheduler


class Reserve:
    """The reserve of one policy."""

    def __init__(self, scene: Scene, settings: ClusterSizeSettings, fleet: NodeFleet, scheduler: Scheduler) -> None:
        self.is_wanted = bool(settings.headroom_ratio or settings.schedules)
        """Whether the policy has a reserve at any time."""
        self._scene = scene
        self._settings = settings
        self._fleet = fleet
        self._scheduler = scheduler
        self._largest_offers = largest_offers(kind.node for kind in fleet.kinds)
        anywhere = StaticFilter(NO_CONSTRAINTS)
        self._is_open = np.array(
            [not anywhere.refusals(new_node_info(kind.node, is_added=False)) for kind in fleet.kinds]
        )
        """Whether each kind of node accepts pods without tolerations."""

    def pods(self, now: float) -> tuple[ClusterPod, ...]:
        """Return the reserve as pods, which `run` counts as pending."""
        return pods_of_headroom(self._size(now)) if self.is_wanted else ()

    def is_short(self, now: float) -> bool:
        """Whether the nodes, including starting ones, lack room for the whole reserve."""
        if not self.is_wanted:
            return False
        wanted = self._size(now)
        return int(self._room(wanted).sum()) < wanted.count

    def removable(self, now: float) -> npt.NDArray[np.bool_]:
        """Return, for each slot, whether the other nodes would have room for the reserve if its node were removed."""
        wanted = self._size(now)
        room = self._room(wanted)
        return np.asarray(room.sum() - room >= wanted.count)

    def _size(self, now: float) -> Headroom:
        settings = self._settings
        ratio = headroom_at(settings.headroom_ratio, settings.schedules, now).ratio
        return headroom_of(ratio, self._requests())

    def _requests(self) -> Iterator[tuple[Mapping[str, int], int]]:
        """Yield requests, and the number of pods that have them, for replayed pods and those of DaemonSets.

        As in `run`, there is no reserve for pods that no kind of node can ever hold.
        """
        for kind, count in zip(self._scene.recording.pod_kinds, self._scheduler.alive, strict=True):
            if is_placeable(kind.resources.requests, self._largest_offers):
                yield kind.resources.requests, count
        for node_kind, count in zip(self._fleet.kinds, self._fleet.counts, strict=True):
            for pod in node_kind.daemons:
                yield pod.resources.requests, count

    def _room(self, wanted: Headroom) -> npt.NDArray[np.int64]:
        """Return how many parts of the reserve the node of each slot has room for."""
        fleet = self._fleet
        room = np.where(fleet.exists[: fleet.end] & self._is_open[fleet.kind_of[: fleet.end]], np.inf, 0.0)
        for row, name in enumerate(self._scene.resources):
            amount = 1 if name == PODS else wanted.chunk.get(name, 0)
            if amount:
                room = np.minimum(room, fleet.free[row, : fleet.end] // amount)
        return np.asarray(np.maximum(room, 0), dtype=np.int64)
