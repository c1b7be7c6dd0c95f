"""The `behavior` of an HPA: how fast it may scale, and how far it looks back before it does.

Defaults are those of autoscaling/v2. They apply to a direction that is not configured, but only if `behavior` is set at
all: an HPA without it follows older rules (see `behaviour`). To change a part of a default, use
`dataclasses.replace`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class PolicyType(StrEnum):
    """The unit in which a policy counts."""

    PODS = "Pods"
    PERCENT = "Percent"


class SelectPolicy(StrEnum):
    """The choice among policies: the one that allows the largest change, the smallest change, or no scaling at all."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """A limit on the change within any period of `period_seconds`."""

    type: PolicyType
    value: int
    period_seconds: int


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """The scaling rules of one direction."""

    policies: tuple[ScalingPolicy, ...]
    select: SelectPolicy = SelectPolicy.MAX
    stabilization_window_seconds: int | None = None
    """None means 0 for scaling up, and the controller's setting for scaling down."""
    tolerance: float | None = None
    """Share of the target; None means the controller's setting."""

    @property
    def longest_period_seconds(self) -> int:
        """The longest period of any policy; 0 if there is no policy."""
        return max((policy.period_seconds for policy in self.policies), default=0)


DEFAULT_SCALE_UP: Final = ScalingRules(
    policies=(ScalingPolicy(PolicyType.PODS, 4, 15), ScalingPolicy(PolicyType.PERCENT, 100, 15)),
)
DEFAULT_SCALE_DOWN: Final = ScalingRules(policies=(ScalingPolicy(PolicyType.PERCENT, 100, 15),))


@dataclass(frozen=True, slots=True)
class Windows:
    """How far back the recommendations count before scaling up, and before scaling down, in seconds."""

    up: float = 0.0
    down: float = 300.0


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The rules of both directions."""

    scale_up: ScalingRules = DEFAULT_SCALE_UP
    scale_down: ScalingRules = DEFAULT_SCALE_DOWN
