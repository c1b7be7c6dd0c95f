"""Pod statuses as a kubelet writes them, without side effects."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.e2e.controlplane.client import Document


@dataclass(frozen=True, slots=True)
class ContainerState:
    """The reported state of one container."""

    name: str
    image: str
    ready: bool
    restarts: int
    pid: int | None = None
    """The id of the running process; None if none runs."""
    started: str | None = None
    """When the present or last process started, in RFC 3339."""
    reason: str = "ContainerCreating"
    """Why the container waits."""
    message: str = ""
    exit_code: int | None = None
    """The exit code of the last process that ended."""


def moment(seconds: float) -> str:
    """Return Unix seconds as Kubernetes writes times."""
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod_status(
    containers: Sequence[ContainerState], node_address: str, pod_address: str | None, started: str, now: str
) -> Document:
    """Return the whole status of a pod; `now` becomes the transition time of conditions that have changed."""
    ready = bool(containers) and all(container.ready for container in containers)
    running = bool(containers) and all(container.started for container in containers)
    status: Document = {
        "phase": "Running" if running else "Pending",
        "hostIP": node_address,
        "hostIPs": [{"ip": node_address}],
        "startTime": started,
        "conditions": [
            _condition("PodScheduled", now, holds=True),
            _condition("Initialized", now, holds=True),
            _condition("ContainersReady", now, holds=ready),
            _condition("Ready", now, holds=ready),
        ],
        "containerStatuses": [_container(container) for container in containers],
    }
    if pod_address:
        status |= {"podIP": pod_address, "podIPs": [{"ip": pod_address}]}
    return status


def same_conditions(old: Document, new: Document) -> Document:
    """Return the new status, in which unchanged conditions keep their transition times."""
    before = {condition["type"]: condition for condition in old.get("conditions") or []}
    kept = []
    for condition in new["conditions"]:
        known = before.get(condition["type"])
        unchanged = known is not None and known["status"] == condition["status"]
        kept.append(
            {**condition, "lastTransitionTime": known["lastTransitionTime"]} if known and unchanged else condition
        )
    return {**new, "conditions": kept}


def _condition(kind: str, now: str, *, holds: bool) -> Document:
    return {"type": kind, "status": "True" if holds else "False", "lastTransitionTime": now}


def _container(of: ContainerState) -> Document:
    status: dict[str, Any] = {
        "name": of.name,
        "image": of.image,
        "imageID": "",
        "ready": of.ready,
        "started": of.pid is not None,
        "restartCount": of.restarts,
        "state": _state(of),
    }
    if of.pid is not None:
        # A process of this machine: tests may send it signals.
        status["containerID"] = f"process://{of.pid}"
    if of.exit_code is not None:
        ended: dict[str, Any] = {"exitCode": of.exit_code, "reason": "Completed" if of.exit_code == 0 else "Error"}
        if of.exit_code < 0:
            ended |= {"exitCode": 128 - of.exit_code, "signal": -of.exit_code}
        status["lastState"] = {"terminated": ended}
    return status


def _state(of: ContainerState) -> Document:
    if of.pid is not None:
        return {"running": {"startedAt": of.started}}
    return {"waiting": {"reason": of.reason, **({"message": of.message} if of.message else {})}}
