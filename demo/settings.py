"""All settings of the demo in one place."""

from __future__ import annotations

from dataclasses import dataclass

from demo.records import Target

DAY_SECONDS = 120.0
REACTIVE, PREDICTIVE = "demo", "demo-predictive"
"""Namespaces of the two fleets."""


def target_of(namespace: str, seconds: float) -> Target:
    """Return the HPA for a day of this length: its looks back are as compressed as the day is."""
    share = min(1.0, seconds / DAY_SECONDS)
    return Target(
        namespace=namespace,
        follows_forecast=namespace == PREDICTIVE,
        connections_per_pod=24,
        min_replicas=2,
        max_replicas=30,
        scale_up_period_seconds=5.0,
        scale_down_window_seconds=max(3.0, round(8.0 * share)),
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """The numbers of one run."""

    seconds: float = DAY_SECONDS
    """How long the compressed day takes."""
    seed: int = 20261121
    hpa: bool = True
    """Whether the HPA loop runs: without it the load is not held, and the verdict must say so."""
    hold: bool = False
    """Whether everything keeps running after the day."""
    sync_seconds: float = 1.0
    start_up_seconds: float = 2.0
    """Time from the request for a pod until it serves."""
    connection_limit: int = 60
    """Limit on the connections of a pod."""
    largest_refused_ratio: float = 0.02

    largest_extra_cost_ratio: float = 0.25
    """How much more pod-seconds than the reactive fleet the predictive one may take."""

    @property
    def targets(self) -> tuple[Target, Target]:
        """The HPAs over the two fleets, which get the same day: the reactive one, and the one with a forecast."""
        return target_of(REACTIVE, self.seconds), target_of(PREDICTIVE, self.seconds)
