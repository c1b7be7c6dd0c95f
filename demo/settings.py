"""All settings of the demo in one place."""

from __future__ import annotations

from dataclasses import dataclass

from demo.load import DAY_SECONDS
from demo.records import Target

REACTIVE, PREDICTIVE = "demo", "demo-predictive"
"""Namespaces of the two fleets."""
HEADROOM_RATIO = 0.3
"""The headroom that both fleets add to the current load until a model is chosen; forecasts cost at least as much."""


LONGEST_CHOICE_SECONDS = 240.0
"""The longest time to wait for the choice, which takes half a minute if processors are free."""
CAUTIOUS_CONNECTIONS_PER_POD = 24
"""The largest number of connections per pod that both fleets aim at if no model was chosen in time."""


def target_of(namespace: str, seconds: float) -> Target:
    """Return the HPA for a day of this length; its windows are as compressed as the day."""
    share = min(1.0, seconds / DAY_SECONDS)
    return Target(
        namespace=namespace,
        follows_forecast=namespace == PREDICTIVE,
        # Few pods would show nothing, so the lower wave of a shorter day is divided into smaller shares.
        connections_per_pod=max(20, round(52 * share)),
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
    """Whether the HPA loop runs: without it, the load is not held, and the verdict must say so."""
    hold: bool = False
    """Whether everything keeps running after the day."""
    sync_seconds: float = 1.0
    start_up_seconds: float = 2.0
    """Time from the request for a pod until it serves."""
    connection_limit: int = 60
    """Limit on the connections of a pod."""
    largest_refused_ratio: float = 0.02
    """The limit for the fleet that follows a forecast."""
    largest_refused_ratio_of_yardstick: float = 0.2
    """The limit for the other fleet, which gets only the pod-seconds that forecasts cost, and so refuses some."""
    largest_delay_ratio: float = 0.08
    """The largest share by which the day may exceed the days before it if forecasts are to be compared."""
    largest_extra_cost_ratio: float = 0.25
    """The largest share by which the pod-seconds of the predictive fleet may exceed those of the reactive one."""

    @property
    def choice_seconds(self) -> float:
        """How long to wait for the choice of a model."""
        return LONGEST_CHOICE_SECONDS * min(1.0, self.seconds / DAY_SECONDS)

    @property
    def targets(self) -> tuple[Target, Target]:
        """The HPAs over the two fleets, which get the same day: the reactive one, and the one with a forecast."""
        return target_of(REACTIVE, self.seconds), target_of(PREDICTIVE, self.seconds)
