"""The pods that a forecast expects in one simulation: how many are missing, and for which of them no node has room.

As in `run`, expected pods that do not exist yet count as pending, and are put on existing nodes first, one node after
the other. Equal pods are placed together, whatever their workload.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from recommender.replay.cluster.situations import needs_whole_cluster
from recommender.replay.forecasts.workload_counts import NO_WORKLOAD

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray, IntArray
    from recommender.replay.cluster.fleet import NodeFleet, PodNeeds
    from recommender.replay.cluster.replay_facts import Scene
    from recommender.replay.cluster.scheduler import Scheduler
    from recommender.replay.forecasts.workload_forecasts import WorkloadForecasts


@dataclass(frozen=True, slots=True)
class _Likes:
    """Pods that do not differ in anything that matters to a node."""

    kind: int
    """The kind of pod that stands for all of them."""
    needs: PodNeeds


class ExpectedPods:
    """The expected pods of one policy."""

    def __init__(
        self, scene: Scene, forecasts: WorkloadForecasts | None, fleet: NodeFleet, scheduler: Scheduler
    ) -> None:
        self._scene = scene
        self._forecasts = forecasts
        self._fleet = fleet
        self._scheduler = scheduler
        self._of_kind = np.full(len(scene.needs), NO_WORKLOAD) if forecasts is None else forecasts.of_kind
        self._is_of_workload = self._of_kind != NO_WORKLOAD
        self._likes = list[_Likes]()
        self._like_of_kind = np.zeros(len(scene.needs), dtype=np.int64)
        self._number_likes()
        self._copies: list[list[ClusterPod]] = [[] for _ in self._likes]
        """The expected pods made so far, by group of equal pods."""
        self._newest_kind = self._first_kinds()
        """The kind of each workload's newest pod; the expected pods are copies of it."""

    def moments(self) -> Iterator[float]:
        """Yield the times at which the expected pods change."""
        if self._forecasts is not None:
            yield from self._forecasts.moments()

    def came(self, kinds: Collection[int]) -> None:
        """Note the kinds of pods that have arrived."""
        if self._forecasts is None:
            return
        for kind in kinds:
            if self._is_of_workload[kind]:
                self._newest_kind[self._of_kind[kind]] = kind

    def for_growth(self, now: float, settings: ClusterSizeSettings) -> tuple[ClusterPod, ...]:
        """Return the expected pods that affect growth: those for which no ready node has room.

        With settings that make growth depend on the whole cluster, all expected pods affect it.
        """
        if self._forecasts is None:
            return ()
        if needs_whole_cluster(settings):
            return self._pods(self._missing_pods(now))
        return self._pods(self._left_and_taken(now, self._fleet.usable[: self._fleet.end])[0])

    def are_wanted(self, now: float) -> bool:
        """Whether the forecast expects pods that do not exist yet."""
        return self._forecasts is not None and bool(self._missing_pods(now).any())

    def is_short(self, now: float) -> bool:
        """Whether the nodes, including starting ones, lack room for expected pods."""
        fleet = self._fleet
        return self._forecasts is not None and bool(self._left_and_taken(now, fleet.exists[: fleet.end])[0].any())

    def placed_on(self, now: float, slots: Collection[int]) -> tuple[ClusterPod, ...]:
        """Return the expected pods that find room on the nodes of these slots."""
        fleet = self._fleet
        if self._forecasts is None:
            return ()
        _, taken = self._left_and_taken(now, fleet.usable[: fleet.end])
        return self._pods(taken[:, list(slots)].sum(axis=1))

    def _left_and_taken(self, now: float, there: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return, by group of equal pods, how many expected pods no slot has room for, and how many each slot takes."""
        wanted = self._missing_pods(now)
        taken = np.zeros((len(self._likes), len(there)))
        if not wanted.any():
            return wanted, taken
        left, free = wanted.copy(), self._fleet.free[:, : len(there)].copy()
        for place in np.flatnonzero(wanted).tolist():
            needs = self._likes[place].needs
            room = self._room(free, needs, there)
            taken[place] = np.maximum(np.minimum(wanted[place] - (room.cumsum() - room), room), 0.0)
            left[place] -= taken[place].sum()
            for row, amount in needs.asked:
                free[row] -= amount * taken[place]
        return left, taken

    def _room(self, free: FloatArray, needs: PodNeeds, there: BoolArray) -> FloatArray:
        """Return how many pods with these needs each slot has room for."""
        fits = there if needs.is_unbound else there & needs.allowed[self._fleet.kind_of[: len(there)]]
        room = np.where(fits, np.inf, 0.0)
        for row, amount in needs.asked:
            np.minimum(room, np.floor(free[row] / amount), out=room)
        return np.maximum(room, 0.0, out=room)

    def _missing_pods(self, now: float) -> FloatArray:
        """Return how many pods are missing, by group of equal pods."""
        if self._forecasts is None:
            return np.zeros(len(self._likes))
        alive = np.array(self._scheduler.alive, dtype=np.float64)
        present = np.bincount(
            self._of_kind[self._is_of_workload],
            weights=alive[self._is_of_workload],
            minlength=len(self._newest_kind),
        )
        missing = self._forecasts.missing_pods(now, present.astype(np.float64))
        likes = self._like_of_kind[self._newest_kind]
        return np.bincount(likes, weights=missing, minlength=len(self._likes)).astype(np.float64)

    def _pods(self, counts: FloatArray) -> tuple[ClusterPod, ...]:
        return tuple(
            pod
            for place in np.flatnonzero(counts).tolist()
            for pod in self._copies_of(place, round(counts.item(place)))
        )

    def _copies_of(self, place: int, count: int) -> list[ClusterPod]:
        copies, like = self._copies[place], self._scene.recording.pod_kinds[self._likes[place].kind]
        copies += (
            replace(like, name=f"expected-{place}-{number}", node="", phase="Pending")
            for number in range(len(copies), count)
        )
        return copies[:count]

    def _number_likes(self) -> None:
        places: dict[Hashable, int] = {}
        for kind, needs in enumerate(self._scene.needs):
            priority = self._scene.recording.pod_kinds[kind].priority
            key = (-priority, needs.amounts.tobytes(), needs.allowed.tobytes())
            if key not in places:
                places[key] = len(self._likes)
                self._likes.append(_Likes(kind, needs))
            self._like_of_kind[kind] = places[key]

    def _first_kinds(self) -> IntArray:
        count = 0 if self._forecasts is None else len(self._forecasts.expected)
        kinds = np.zeros(count, dtype=np.int64)
        for kind in reversed(np.flatnonzero(self._is_of_workload).tolist()):
            kinds[self._of_kind[kind]] = kind
        return kinds
