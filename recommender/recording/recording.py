"""A recording of a cluster: which nodes and pods there were, from when to when. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod


class RecordingError(Exception):
    """Nothing can be made of the recorded past; the message is one line: where, what is wrong, what to do."""


@dataclass(frozen=True, slots=True)
class RecordedNode:
    """A node and its time. All times are seconds since the Unix epoch."""

    node: ClusterNode
    came: float
    gone: float | None
    """None: it was there at the end of the recording."""

    def is_there(self, time: float) -> bool:
        """Return whether the node existed at a time."""
        return self.came <= time and (self.gone is None or time < self.gone)


@dataclass(frozen=True, slots=True)
class RecordedPod:
    """A pod and its time."""

    kind: int
    """Which of `Recording.pod_kinds` it is like."""
    created: float
    bound: float | None
    """When it got its node; None: it had none to the end."""
    gone: float | None
    """When it ended or was deleted; None: it was there at the end of the recording."""
    node: str = ""
    """The node that it got; empty for none."""


@dataclass(frozen=True, slots=True)
class RecordingGap:
    """A time of which nothing is known."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Recording:
    """The past of one cluster."""

    source: str
    """Where it comes from, for messages."""
    start: float
    end: float
    nodes: tuple[RecordedNode, ...]
    pods: tuple[RecordedPod, ...]
    """By the time of their creation."""
    pod_kinds: tuple[ClusterPod, ...]
    """One for all pods that are alike to every decision; it has neither a name nor a node."""
    gaps: tuple[RecordingGap, ...] = ()
    notes: tuple[str, ...] = ()
    """The facts that the source lacks, one sentence each."""

    @property
    def seconds(self) -> float:
        """Return the length of the recording."""
        return self.end - self.start
