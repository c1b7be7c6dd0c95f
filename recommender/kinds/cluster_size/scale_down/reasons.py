"""Lists the reasons why a node stays or waits. Each name is Cluster Autoscaler's if it has one for the reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from adapter.foundation.objects.durations import format_go_duration


class KeepReason(StrEnum):
    """Why a node stays."""

    NOT_AUTOSCALED = "NotAutoscaled"
    CURRENTLY_BEING_DELETED = "CurrentlyBeingDeleted"
    SCALE_DOWN_DISABLED_ANNOTATION = "ScaleDownDisabledAnnotation"
    NODE_STARTING = "NodeStarting"
    SCALE_DOWN_UNREADY_DISABLED = "ScaleDownUnreadyDisabled"
    NOT_UNDERUTILIZED = "NotUnderutilized"
    UNEXPECTED_ERROR = "UnexpectedError"
    RECENTLY_UNREMOVABLE = "RecentlyUnremovable"
    NO_PLACE_TO_MOVE_PODS = "NoPlaceToMovePods"
    NODE_GROUP_MIN_SIZE_REACHED = "NodeGroupMinSizeReached"
    MINIMAL_RESOURCE_LIMIT_EXCEEDED = "MinimalResourceLimitExceeded"
    ATOMIC_SCALE_DOWN_FAILED = "AtomicScaleDownFailed"
    UNNEEDED_LIMIT_REACHED = "UnneededLimitReached"
    SIMULATION_LIMIT_REACHED = "SimulationLimitReached"


class WaitReason(StrEnum):
    """The reason why an unneeded node is not removed now."""

    NOT_UNNEEDED_LONG_ENOUGH = "NotUnneededLongEnough"
    NOT_UNREADY_LONG_ENOUGH = "NotUnreadyLongEnough"
    BLOCKED_BY_ON_COMPLETION_POD = "BlockedByOnCompletionPod"
    DELETION_DELAYED = "DeletionDelayed"
    IN_COOLDOWN = "InCooldown"
    SCALE_UP_HELD = "ScaleUpHeld"
    SCALE_UP_NEEDED = "ScaleUpNeeded"
    UPCOMING_NODES = "UpcomingNodes"
    YOUNG_PENDING_PODS = "YoungPendingPods"
    PENDING_PODS_NOT_LOOKED_AT = "PendingPodsNotLookedAt"
    PARALLELISM_REACHED = "ParallelismReached"
    ATOMIC_SCALE_DOWN_FAILED = "AtomicScaleDownFailed"
    NO_PLACE_TO_MOVE_PODS = "NoPlaceToMovePods"


@dataclass(frozen=True, slots=True)
class Waiting:
    """The reason why an unneeded node is not removed now."""

    reason: WaitReason
    detail: str

    def __str__(self) -> str:
        """Return the reason in one line: `InCooldown: a node was added 2m0s ago, and nodes go 10m0s after that`."""
        return f"{self.reason}: {self.detail}"


class BlockingPodReason(StrEnum):
    """Why a pod keeps its node."""

    CONTROLLER_NOT_FOUND = "ControllerNotFound"
    MIN_REPLICAS_REACHED = "MinReplicasReached"
    NOT_REPLICATED = "NotReplicated"
    UNMOVABLE_KUBE_SYSTEM_POD = "UnmovableKubeSystemPod"
    NOT_SAFE_TO_EVICT_ANNOTATION = "NotSafeToEvictAnnotation"
    LOCAL_STORAGE_REQUESTED = "LocalStorageRequested"
    NOT_ENOUGH_PDB = "NotEnoughPdb"
    UNEXPECTED_ERROR = "UnexpectedError"


def duration_of(seconds: float) -> str:
    """Return whole seconds as `4m10s`."""
    return format_go_duration(float(round(seconds)))


def percent_of(ratio: float) -> str:
    """Return `12%`, with one digit after the point where that is not 0."""
    return f"{ratio * 100:.1f}".removesuffix(".0") + "%"
