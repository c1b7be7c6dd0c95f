"""From the object of a target to what a decision has to know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.inputs import FieldManager, TargetState

if TYPE_CHECKING:
    from adapter.cluster.targets import ScaledObject


def target_state_of(found: ScaledObject) -> TargetState:
    """Return the state of a target whose whole object is known."""
    return TargetState(
        replicas=found.replicas,
        ready_replicas=found.ready_replicas,
        rollout=found.rollout,
        paused=found.paused,
        replicas_managers=tuple(FieldManager(each.name, each.operation, each.time) for each in found.replicas_managers),
    )
