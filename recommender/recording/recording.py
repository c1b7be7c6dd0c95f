"""A recording of a cluster: its nodes and pods, with the times at which they existed. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod


class RecordingError(Exception):
    """The recorded past cannot be used; the message is one line: where, what is wrong, what to do."""


@dataclass(frozen=True, slots=True)
class RecordedNode:
    """A node and the time in which it existed. All times are Unix seconds."""

    node: ClusterNode
    came: float
    gone: float | None
    """When the node was removed; None if it existed at the end of the recording."""

    def is_there(self, time: float) -> bool:
        """Return whether the node existed at a time."""
        return self.came <= time and (self.gone is None or time < self.gone)


@dataclass(frozen=True, slots=True)
class RecordedPod:
    """A pod, and the time during which it existed."""

    kind: int
    """The index of the pod's kind in `Recording.pod_kinds`."""
    created: float
    bound: float | None
    """When the pod was bound to its node; None if it never was."""
    gone: float | None
    """When the pod ended or was deleted; None if it existed at the end of the recording."""
    node: str = ""
    """The node that the pod was bound to; empty for none."""


@dataclass(frozen=True, slots=True)
class RecordingGap:
    """A period about which nothing is known."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Recording:
    """The past of one cluster."""

    source: str
    """Where the recording comes from, for messages."""
    start: float
    end: float
    nodes: tuple[RecordedNode, ...]
    pods: tuple[RecordedPod, ...]
    """Pods in the order of their creation."""
    pod_kinds: tuple[ClusterPod, ...]
    """One pod for each kind: pods of one kind are equal for every decision. These pods have neither a name nor a
    node."""
    gaps: tuple[RecordingGap, ...] = ()
    notes: tuple[str, ...] = ()
    """The facts that the source lacks, one sentence each."""

    @property
    def seconds(self) -> float:
        """Return the length of the recording."""
        return self.end - self.start
