"""Differences between versions of the HPA controller, as far as the next sync of an HPA depends on them.

The version of the API server is taken for that of the controller, and is only read if the difference matters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.hpa.pods import PodPhase
from adapter.foundation.hpa.spec import PodsMetric, ResourceMetric
from adapter.foundation.reports.counts import first_names
from adapter.foundation.sources.kubernetes.access_rights import AccessRight
from recommender.kubectl.reader import NotRead, Reader

if TYPE_CHECKING:
    from adapter.foundation.hpa.proposals import HpaWorkload
    from adapter.foundation.hpa.spec import HPASpec

_PATH: Final = "/version"
_IGNORES_SUCCEEDED: Final = 38
"""The minor version of Kubernetes from which pods that have succeeded do not count."""
_SCALED_TO_ZERO: Final = "ScaledToZero"
_KEEPS_ZERO: Final = 36
"""The minor version from which 0 replicas grow only if the HPA has the condition `ScaledToZero`."""


@dataclass(frozen=True, slots=True)
class ControllerBehaviour:
    """How the controller of this cluster treats what versions treat differently."""

    ignores_succeeded: bool = True
    """Whether pods that have succeeded do not count; True if that does not matter."""
    scaled_to_zero: bool | None = None
    """Whether the controller itself made the present 0 replicas; None if it does not ask, or if there are others."""
    unread: str = ""
    """Why the version is unknown, if that matters; the answer is then that of versions before the change."""


def controller_behaviour(
    reader: Reader, hpa: Mapping[str, Any], spec: HPASpec, workload: HpaWorkload
) -> ControllerBehaviour:
    """Return how the controller treats the workload. Raises UnauthorizedError."""
    is_zero = workload.spec_replicas == 0
    stated = _is_scaled_to_zero(hpa) if is_zero else None
    has_succeeded = any(isinstance(one, PodsMetric | ResourceMetric) for one in spec.metrics) and _succeeded_pods(
        workload
    )
    if not has_succeeded and not (is_zero and stated is None):
        return ControllerBehaviour(scaled_to_zero=stated)
    found = _minor_version(reader)
    if isinstance(found, NotRead):
        return ControllerBehaviour(not has_succeeded, stated, f"the version of Kubernetes: {found.reason}")
    keeps_zero = is_zero and stated is None and found >= _KEEPS_ZERO
    return ControllerBehaviour(not has_succeeded or found >= _IGNORES_SUCCEEDED, False if keeps_zero else stated)


def succeeded_sentences(workload: HpaWorkload) -> tuple[str, ...]:
    """Return the effect of pods that have succeeded on a controller that does not ignore them."""
    names = _succeeded_pods(workload)
    verb = "has" if len(names) == 1 else "have"
    effect = "with nothing when it would scale up, and with all of the target when it would scale down"
    return (
        f"{first_names(names)} {verb} succeeded, and the selector still finds them.",
        f"Before Kubernetes 1.{_IGNORES_SUCCEEDED}, the controller counts them like pods without a value: {effect}.",
        "Deleting them ends this.",
    )


def _succeeded_pods(workload: HpaWorkload) -> list[str]:
    return [pod.name for pod in workload.pods if pod.phase is PodPhase.SUCCEEDED and not pod.deleted]


def _is_scaled_to_zero(hpa: Mapping[str, Any]) -> bool | None:
    """Return the HPA's condition `ScaledToZero`; None if it has none."""
    conditions = (hpa.get("status") or {}).get("conditions") or ()
    return next((one.get("status") == "True" for one in conditions if one.get("type") == _SCALED_TO_ZERO), None)


def _minor_version(reader: Reader) -> int | NotRead:
    """Return the minor version of Kubernetes; providers append a plus sign to it."""
    found = reader.object(_PATH, AccessRight("get", _PATH))
    if isinstance(found, NotRead):
        return found
    digits = re.match(r"[0-9]{1,4}", str(found.get("minor", "")))
    return int(digits[0]) if digits else NotRead(f"GET {_PATH}: the answer names none")
