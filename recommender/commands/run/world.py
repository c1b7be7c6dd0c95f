"""What surrounds the loop: a cluster, or a folder of objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from adapter.cluster.state import ClusterState, Observed, Unknown
    from recommender.decisions.inputs import ConfigMapData, TargetState
    from recommender.decisions.record import TargetReference
    from recommender.running.leadership import Leadership
    from recommender.running.memory_store import MemoryStore
    from recommender.running.plans import Plan
    from recommender.running.runner import Effects, Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Where inputs come from, and where decisions go."""

    cluster: Callable[[], ClusterState]
    config_map: Callable[[str, str], Observed[ConfigMapData | None] | Unknown]
    targets: Callable[[Collection[TargetReference]], Mapping[TargetReference, Observed[TargetState | None] | Unknown]]
    leadership: Leadership
    memory_store: MemoryStore
    effects: Effects
    change: Callable[[Plan], None]
    """Follows a changed configuration."""
    connect: Callable[[Runner], None]
    """Starts what needs the runner."""
    has_tried_lists: Callable[[], bool]
    """Whether the first list of every kind has arrived or failed."""
