"""What an evaluation gives back: the number, why it is that number, and what to remember."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.hpa.behaviour import LimitReason
    from recommender.hpa.history import HpaHistory
    from recommender.hpa.proposals import Proposal


class ActiveReason(StrEnum):
    """Reasons of the condition ScalingActive."""

    VALID_METRIC_FOUND = "ValidMetricFound"
    SCALING_DISABLED = "ScalingDisabled"
    FAILED_GET_PODS_METRIC = "FailedGetPodsMetric"
    FAILED_GET_RESOURCE_METRIC = "FailedGetResourceMetric"
    FAILED_GET_CONTAINER_RESOURCE_METRIC = "FailedGetContainerResourceMetric"
    FAILED_GET_OBJECT_METRIC = "FailedGetObjectMetric"
    FAILED_GET_EXTERNAL_METRIC = "FailedGetExternalMetric"


class AbleReason(StrEnum):
    """Reasons of the condition AbleToScale, as far as arithmetic decides it."""

    READY_FOR_NEW_SCALE = "ReadyForNewScale"
    SCALE_UP_STABILIZED = "ScaleUpStabilized"
    SCALE_DOWN_STABILIZED = "ScaleDownStabilized"


@dataclass(frozen=True, slots=True)
class HpaStep:
    """One step of the way to the number."""

    step: str
    value: int | None
    """Replicas after this step; None for a metric that could not be used."""
    detail: str


@dataclass(frozen=True, slots=True)
class HpaDecision:
    """How many replicas there shall be, and why."""

    current: int
    desired: int
    reason: ActiveReason | AbleReason | LimitReason
    """What made the number what it is: a limit, else the look-back; or why nothing is done."""
    message: str
    """The same for people, with the metric that asked for most."""
    steps: tuple[HpaStep, ...]
    proposals: tuple[Proposal, ...]
    """One for each metric, in the order of the spec; empty where the metrics were not looked at."""
    scaling_active: ActiveReason | None
    """None where the current number is outside of minimum and maximum: the metrics were not looked at."""
    able_to_scale: AbleReason | None
    """None where the look-back had no part."""
    scaling_limited: LimitReason | None
    """None where the limits had no part; `DesiredWithinRange` where they changed nothing."""
    history: HpaHistory
    """What to remember once `desired` stands: after the scale call, or at once where `scales` is False."""
    history_if_not_scaled: HpaHistory
    """What to remember instead if the scale call failed."""

    @property
    def scales(self) -> bool:
        """Whether a scale call follows."""
        return self.desired != self.current
