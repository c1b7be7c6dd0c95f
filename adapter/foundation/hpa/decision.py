"""The result of an evaluation: the number, its reason, and the history to keep."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.foundation.hpa.behaviour import LimitReason
    from adapter.foundation.hpa.history import HpaHistory
    from adapter.foundation.hpa.proposals import Proposal


class ActiveReason(StrEnum):
    """Reasons of the condition ScalingActive when it is false."""

    SCALING_DISABLED = "ScalingDisabled"
    FAILED_GET_PODS_METRIC = "FailedGetPodsMetric"
    FAILED_GET_RESOURCE_METRIC = "FailedGetResourceMetric"
    FAILED_GET_CONTAINER_RESOURCE_METRIC = "FailedGetContainerResourceMetric"
    FAILED_GET_OBJECT_METRIC = "FailedGetObjectMetric"
    FAILED_GET_EXTERNAL_METRIC = "FailedGetExternalMetric"


class AbleReason(StrEnum):
    """Reasons of the condition AbleToScale that follow from the arithmetic alone."""

    READY_FOR_NEW_SCALE = "ReadyForNewScale"
    SCALE_UP_STABILIZED = "ScaleUpStabilized"
    SCALE_DOWN_STABILIZED = "ScaleDownStabilized"


@dataclass(frozen=True, slots=True)
class HpaStep:
    """One step of the calculation."""

    step: str
    value: int | None
    """Replicas after this step; None for a metric that could not be used."""
    detail: str
    """The calculation; for the look-back and the limits, the controller's reason as it appears in the HPA's status."""


@dataclass(frozen=True, slots=True)
class HpaDecision:
    """The desired number of replicas, and the reason for it."""

    current: int
    desired: int
    reason: ActiveReason | AbleReason | LimitReason
    """The limit that determines the number, or else the result of the look-back; or why nothing is done."""
    message: str
    """The reason in words, with the metric that asked for the most replicas."""
    steps: tuple[HpaStep, ...]
    proposals: tuple[Proposal, ...]
    """One proposal for each metric, in the order of the spec; empty if the metrics were not evaluated."""
    history: HpaHistory
    """The history to keep once `desired` is in force."""
