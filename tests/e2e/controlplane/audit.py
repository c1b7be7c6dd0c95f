"""The requests in the API server's audit log: all requests to the metrics APIs, and all requests of pods.

The audit log has the answer and the time of every request; the API server's metrics have only buckets.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
METRICS_GROUPS: Final = ("custom.metrics.k8s.io", "external.metrics.k8s.io", "metrics.k8s.io")

POLICY: Final[Mapping[str, Any]] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "resources": [{"group": group} for group in METRICS_GROUPS]},
        # The controllers' own requests; all other service accounts are those of pods.
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One request, logged when its answer was complete, or for a watch also when it began (ResponseStarted)."""

    stage: str
    user: str
    groups: tuple[str, ...]
    verb: str
    """The verb as authorisation names it: get, list, watch, create, …"""
    uri: str
    group: str
    resource: str
    namespace: str
    code: int
    start: datetime
    end: datetime
    pod: str = ""
    """The pod that the caller's service account token belongs to; empty for all other callers."""

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()


class AuditTail:
    """The events from now on, each once, so that a log which grows for minutes is not parsed again for each look."""

    def __init__(self, path: Path, *, from_the_start: bool = False) -> None:
        self._path = path
        self._offset = path.stat().st_size if path.exists() and not from_the_start else 0

    def read(self) -> list[AuditEvent]:
        """Return the events since the last call; a last line that is still being written comes with the next call."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as log:
            log.seek(self._offset)
            # Read in one go: the rest of a line that is being written would look like a line of its own.
            written = log.read()
        whole = written[: written.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [_event(json.loads(line)) for line in whole.splitlines()]


def _event(found: Mapping[str, Any]) -> AuditEvent:
    of, user = found.get("objectRef") or {}, found["user"]
    return AuditEvent(
        stage=found["stage"],
        user=user.get("username", ""),
        groups=tuple(user.get("groups") or ()),
        verb=found["verb"],
        uri=found["requestURI"],
        group=of.get("apiGroup", ""),
        resource=of.get("resource", ""),
        namespace=of.get("namespace", ""),
        code=(found.get("responseStatus") or {}).get("code", 0),
        start=datetime.fromisoformat(found["requestReceivedTimestamp"]),
        end=datetime.fromisoformat(found["stageTimestamp"]),
        pod=next(iter((user.get("extra") or {}).get(_POD_NAME) or ()), ""),
    )
