"""Remembers a replay's decisions on growth, for situations with equal pods, equal starting nodes and equal limits.

Growth depends on little: how many pods of which shapes have no node, and how full the starting nodes are. In a week
of a synthetic past with six policies, three quarters of the situations had occurred before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeAlias

from recommender.kinds.cluster_size.expanders.price import preferred_cores
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, ScaleDownSettings
from recommender.kinds.cluster_size.predicates.pod_shapes import ShapeTable
from recommender.kinds.cluster_size.scale_up.pending_pods import DELAY_ANNOTATION, SETTLING_SECONDS
from recommender.replay.cluster.situations import Situations, needs_whole_cluster

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from adapter.foundation.cluster.values.pods import ClusterPod
    from recommender.kinds.cluster_size.model.answer import ScaleUp
    from recommender.replay.cluster.replay_facts import Scene

_MOST: Final = 20_000
"""The most decisions that one replay remembers: enough for a month with seven policies, and a bound for longer replays.
"""

GrowthKey: TypeAlias = "Hashable | None"


@dataclass(frozen=True, slots=True)
class GroupGrowth:
    """The parts of a decision on growth that affect a replay."""

    increases: Mapping[str, int]
    waits_until: float | None
    has_waiting: bool
    has_unschedulable: bool


def growth_in(scaled: ScaleUp) -> GroupGrowth:
    """Return the parts of a decision that affect a replay."""
    return GroupGrowth(scaled.increases, scaled.waits_until, bool(scaled.waiting), bool(scaled.unschedulable))


class KnownGrowth:
    """The decisions made so far, for all policies of one replay."""

    def __init__(self, most: int = _MOST) -> None:
        """Begin without a decision; at most `most` decisions are remembered."""
        self._most = most
        self._settings: list[ClusterSizeSettings] = []
        self._found: dict[Hashable, GroupGrowth] = {}
        # The scene is kept, too: the identity of a deleted object may be reused for another.
        self._likes: dict[int, tuple[Scene, Sequence[int]]] = {}

    def number_of(self, scene: Scene, settings: ClusterSizeSettings) -> int | None:
        """Return a number that settings with the same growth of groups share; None if decisions may not be reused."""
        if not _is_comparable(scene, settings):
            return None
        same = replace(settings, scale_down=ScaleDownSettings())
        if same not in self._settings:
            self._settings.append(same)
        return self._settings.index(same)

    def likes_of(self, scene: Scene) -> Sequence[int]:
        """Return, for each kind of pod, a number shared by all kinds that lead to the same growth."""
        known = self._likes.get(id(scene))
        if known is None:
            known = self._likes[id(scene)] = scene, tuple(_likes(scene.recording.pod_kinds))
        return known[1]

    def get(self, number: int | None, key: GrowthKey) -> GroupGrowth | None:
        """Return the decision for a situation, if it is known."""
        return None if number is None or key is None else self._found.get((number, key))

    def __len__(self) -> int:
        """Return how many decisions are known."""
        return len(self._found)

    def put(self, number: int | None, key: GrowthKey, found: GroupGrowth) -> None:
        """Remember a decision."""
        if number is not None and key is not None and len(self._found) < self._most:
            self._found[number, key] = found


def growth_key(
    situations: Situations,
    pods: Mapping[int, Mapping[int, float]],
    likes: Sequence[int],
    settings: ClusterSizeSettings,
    now: float,
) -> GrowthKey:
    """Return a key that situations with the same growth of groups share; None if growth depends on the moment.

    `pods` are the pending ones by kind, each with the time since which it has been waiting, and `likes` are from
    `KnownGrowth.likes_of`. This function must not be called while a group backs off, nor if there are future pods.
    """
    old = now - max(SETTLING_SECONDS, settings.new_pod_scale_up_delay_seconds)
    if any(since > old for waiting in pods.values() for since in waiting.values()):
        return None
    most = 1 + sum(map(len, pods.values()))
    slots = situations.growing_slots()
    return (
        tuple(
            (like, sum(count for _, count in counts))
            for like, counts in groupby(
                ((likes[kind], len(waiting)) for kind, waiting in pods.items()), key=lambda one: one[0]
            )
        ),
        situations.loads(slots),
        tuple(
            (max(0, limit.min_size - limit.target_size), max(-1, min(most, limit.max_size - limit.target_size)))
            for limit in situations.limits(slots).values()
        ),
        preferred_cores(situations.size()),
    )


def _likes(kinds: Sequence[ClusterPod]) -> Iterator[int]:
    """Yield, for each kind, the number of the first kind that is alike.

    Groups grow in the same way for pods that differ by their controllers alone, as long as no controller has two such
    kinds: pods of one controller and shape are one group, wherever they are in the order.
    """
    shapes = ShapeTable()
    ids = [id(shapes.shape(kind)) for kind in kinds]
    owners = [None if kind.controller is None else kind.controller.uid for kind in kinds]
    counts = Counter(zip(ids, owners, strict=True))
    first: dict[Hashable, int] = {}
    for number, (kind, shape, owner) in enumerate(zip(kinds, ids, owners, strict=True)):
        is_only_one = owner is not None and counts[shape, owner] == 1
        nominated = "" if kind.facts is None else kind.facts.nominated_node
        yield first.setdefault((shape, nominated, kind.is_terminating), number) if is_only_one else number


def _is_comparable(scene: Scene, settings: ClusterSizeSettings) -> bool:
    """Return whether growth depends only on what `growth_key` contains."""
    groups = [group for group in scene.groups.groups if not group.problem]
    return not (
        needs_whole_cluster(settings)
        or any(group.options.zero_or_max for group in groups)
        or any(settings.provision_seconds_of(group) <= scene.startup_seconds for group in groups)
        or any(
            kind.facts is not None and DELAY_ANNOTATION in kind.facts.annotations for kind in scene.recording.pod_kinds
        )
    )
