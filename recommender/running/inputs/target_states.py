"""Turns the size that an object states into the facts that a decision needs about a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Observed, Unknown
from recommender.decisions.inputs import TargetState

if TYPE_CHECKING:
    from adapter.foundation.cluster.facts.scale_targets import ScaledObject
    from recommender.running.inputs.input_gathering import TargetInput


def target_state_of(found: ScaledObject) -> TargetState:
    """Return the state of a target whose whole object is known."""
    return TargetState(
        replicas=found.replicas,
        rollout=found.rollout,
        paused=found.paused,
        replicas_managers=found.replicas_managers,
    )


def target_input(found: Observed[ScaledObject | None] | Unknown) -> TargetInput:
    """Return the state of a target from files, as an input."""
    if isinstance(found, Unknown):
        return found
    return Observed(None if found.value is None else target_state_of(found.value), found.time)
