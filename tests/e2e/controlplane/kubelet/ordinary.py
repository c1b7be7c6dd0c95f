"""Ordinary pods: nothing runs, but their status says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.e2e.controlplane.kubelet.status import ContainerState, moment

if TYPE_CHECKING:
    from tests.e2e.controlplane.client import Document

READY_ANNOTATION: Final = "e2e.tidewatch.io/ready"
"""`"false"` keeps a pod from being Ready, or makes it unready again."""
START_UP_ANNOTATION: Final = "e2e.tidewatch.io/start-up-seconds"
"""How long this pod takes from its node to Ready, in place of the cluster's own time."""


@dataclass(frozen=True, slots=True)
class OrdinaryPod:
    """One ordinary pod; nobody listens at its `address`."""

    pod: Document
    address: str
    ready_at: float
    """When the pod becomes Ready, on the caller's clock."""
    started: str

    def states(self, now: float) -> list[ContainerState]:
        """Return the states of its containers that are to be reported."""
        running = now >= self.ready_at
        ready = running and _annotation(self.pod, READY_ANNOTATION, "true") != "false"
        return [
            ContainerState(
                name=container["name"],
                image=container["image"],
                ready=ready,
                restarts=0,
                pid=0 if running else None,
                started=self.started if running else None,
            )
            for container in self.pod["spec"]["containers"]
        ]


def start_up_seconds(pod: Document, otherwise: float) -> float:
    """Return how long the pod takes to become Ready."""
    return float(_annotation(pod, START_UP_ANNOTATION, str(otherwise)))


def ordinary_address(number: int) -> str:
    """Return an address that is not on the suite's wire, from 10.98.0.1 on."""
    return f"10.98.{number // 250}.{1 + number % 250}"


def started_at(unix_now: float, seconds: float) -> str:
    """Return when the containers of a pod that gets its node now will have started."""
    return moment(unix_now + seconds)


def _annotation(pod: Document, name: str, otherwise: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(name, otherwise))
