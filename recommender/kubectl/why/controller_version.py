"""What the next sync of an HPA depends on besides its spec and its metrics: the version of the controller.

The version of the API server is taken for that of the controller, and is only read if the difference matters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.hpa import PodPhase, PodsMetric, ResourceMetric
from adapter.foundation.reports.counts import listed
from adapter.foundation.sources.kubernetes.access_rights import AccessRight
from recommender.kubectl.reader import NotRead, Reader

if TYPE_CHECKING:
    from adapter.foundation.hpa import HPASpec, HpaWorkload

_PATH: Final = "/version"
_IGNORES_SUCCEEDED: Final = 38
"""The minor version of Kubernetes from which pods that have succeeded do not count."""


@dataclass(frozen=True, slots=True)
class ControllerBehaviour:
    """How the controller of this cluster treats what versions treat differently."""

    ignores_succeeded: bool = True
    """Whether pods that have succeeded do not count; True if that does not matter."""
    unread: str = ""
    """Why the version is unknown, if that matters; the answer is then that of versions before the change."""


def controller_behaviour(reader: Reader, spec: HPASpec, workload: HpaWorkload) -> ControllerBehaviour:
    """Return how the controller treats the workload. Raises UnauthorizedError."""
    counts_pods = any(isinstance(metric, PodsMetric | ResourceMetric) for metric in spec.metrics)
    if not counts_pods or not _succeeded(workload):
        return ControllerBehaviour()
    found = _minor_version(reader)
    if isinstance(found, NotRead):
        return ControllerBehaviour(ignores_succeeded=False, unread=f"the version of Kubernetes: {found.reason}")
    return ControllerBehaviour(ignores_succeeded=found >= _IGNORES_SUCCEEDED)


def succeeded_sentences(workload: HpaWorkload) -> tuple[str, ...]:
    """Return the effect of pods that have succeeded on a controller that does not ignore them."""
    names = _succeeded(workload)
    verb = "has" if len(names) == 1 else "have"
    effect = "with nothing when it would scale up, and with all of the target when it would scale down"
    return (
        f"{listed(names)} {verb} succeeded, and the selector still finds them.",
        f"Before Kubernetes 1.{_IGNORES_SUCCEEDED}, the controller counts them like pods without a value: {effect}.",
        "Deleting them ends this.",
    )


def _succeeded(workload: HpaWorkload) -> list[str]:
    return [pod.name for pod in workload.pods if pod.phase is PodPhase.SUCCEEDED and not pod.deleted]


def _minor_version(reader: Reader) -> int | NotRead:
    """Return the minor version of Kubernetes; providers append a plus sign to it."""
    found = reader.object(_PATH, AccessRight("get", _PATH))
    if isinstance(found, NotRead):
        return found
    digits = re.match(r"[0-9]{1,4}", str(found.get("minor", "")))
    return int(digits[0]) if digits else NotRead(f"GET {_PATH}: the answer names none")
