"""Simulates removals one after another on one snapshot, each with the room that earlier ones have left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.counts import agreeing, count_of
from recommender.kinds.cluster_size.scale_down.disruptions import RemainingDisruptions
from recommender.kinds.cluster_size.scale_down.pod_places import PodPlaces
from recommender.kinds.cluster_size.scale_down.reasons import KeepReason, duration_of
from recommender.kinds.cluster_size.scale_down.removal_candidates import kept_for, kept_node
from recommender.kinds.cluster_size.scale_down.simulated_removal import Move, RemovalSimulator, Unremovable
from recommender.kinds.cluster_size.scale_down.unneeded_times import recently_unremovable, unneeded_limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recommender.kinds.cluster_size.model.answer import KeptNode
    from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
    from recommender.kinds.cluster_size.scale_down.minimum_sizes import Minimums
    from recommender.kinds.cluster_size.scale_down.removal_candidates import NodeSurvey, RemovalUnit

MOST_CHECKS: Final = 10_000_000
"""The most checks of a pod against a node in one decision, about 20 s on one core. Nodes beyond that stay."""


@dataclass(frozen=True, slots=True)
class SimulatedRemoval:
    """Nodes that can be removed together."""

    unit: RemovalUnit
    moves: tuple[Move, ...]
    checkpoint: int
    """The checkpoint of the snapshot before their removal."""


@dataclass(frozen=True, slots=True)
class RemovalSequence:
    """The result of the simulation."""

    removed: tuple[SimulatedRemoval, ...]
    kept: tuple[KeptNode, ...]
    failed: frozenset[str]
    """Nodes whose pods found no place, which are not simulated again for a while."""


def simulate(
    situation: ClusterSituation,
    settings: ScaleDownSettings,
    snapshot: Snapshot,
    found: NodeSurvey,
    minimums: Minimums,
) -> RemovalSequence:
    """Remove all candidates that can be removed, in order. The snapshot is left without them."""
    simulator = new_simulator(snapshot, found.destinations, RemainingDisruptions(situation.budgets))
    most = _most_unneeded(situation, settings)
    removed: list[SimulatedRemoval] = []
    kept: list[KeptNode] = []
    failed: set[str] = set()
    single = 0
    for unit in found.units:
        is_whole = unit[0].group.options.zero_or_max
        refusal = None if is_whole else _beyond_limit(single, most)
        refusal = refusal or _not_worth_it(unit, situation, minimums)
        if refusal is None:
            checkpoint = snapshot.checkpoint()
            result = simulator.remove([one.plan for one in unit])
            if not isinstance(result, Unremovable):
                minimums.take(unit[0].group.name, [one.node for one in unit])
                removed.append(SimulatedRemoval(unit, result, checkpoint))
                single += not is_whole
                continue
            refusal = result
            if result.reason is KeepReason.NO_PLACE_TO_MOVE_PODS:
                failed.update(one.node.name for one in unit)
        if situation.explains:
            kept += _kept_nodes(unit, refusal)
    return RemovalSequence(tuple(removed), tuple(kept), frozenset(failed))


def new_simulator(
    snapshot: Snapshot, destinations: Sequence[str], disruptions: RemainingDisruptions
) -> RemovalSimulator:
    """Return a simulator without any results yet."""
    return RemovalSimulator(snapshot, PodPlaces(snapshot, destinations, MOST_CHECKS), disruptions)


def _most_unneeded(situation: ClusterSituation, settings: ScaleDownSettings) -> int | None:
    """Return how many unneeded nodes are worth finding; None for all of them, if the decision does not wait."""
    if not situation.waits:
        return None
    decided = situation.last_decided
    interval = settings.unneeded_seconds if decided is None else situation.now - decided
    previous = len(situation.memory.unneeded_since)
    return unneeded_limit(previous, settings.max_parallelism, settings.unneeded_seconds, interval)


def _beyond_limit(found: int, most: int | None) -> Unremovable | None:
    if most is None or found < most:
        return None
    others = f"{count_of(found, 'other node')} {agreeing(found, 'is', 'are')} unneeded already"
    detail = f"{others}, more than can be removed before this node is evaluated again"
    return Unremovable(KeepReason.UNNEEDED_LIMIT_REACHED, detail)


def _not_worth_it(unit: RemovalUnit, situation: ClusterSituation, minimums: Minimums) -> Unremovable | None:
    """Return why the nodes are not simulated; None if they are."""
    refusal = minimums.refusal(unit[0].group.name, [one.node for one in unit])
    if refusal:
        return Unremovable(*refusal)
    if not situation.waits:
        return None
    for one in unit:
        until = recently_unremovable(one.node.name, situation.memory.unremovable_until, situation.now)
        if until is not None and not one.plan.is_empty:
            left = duration_of(until - situation.now)
            detail = f"its pods did not fit elsewhere a moment ago, and it is simulated again in {left}"
            return Unremovable(KeepReason.RECENTLY_UNREMOVABLE, detail)
    return None


def _kept_nodes(unit: RemovalUnit, why: Unremovable) -> Iterable[KeptNode]:
    if len(unit) == 1:
        return [kept_for(unit[0].node, unit[0].group, why)]
    together = f"{KeepReason.ATOMIC_SCALE_DOWN_FAILED}: the node group is removed as a whole or not at all; {why}"
    return [kept_node(one.node, one.group, together) for one in unit]
