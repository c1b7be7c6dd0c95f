"""The inputs of a cluster size decision that are gathered for only one recommendation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from recommender.decisions.record import TargetReference
    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer
    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginReading
    from recommender.outputs.write_attempt import ScaleOutcome


@dataclass(frozen=True, slots=True)
class SizeFacts:
    """The inputs that are gathered for only one recommendation (`Inputs.own`)."""

    waits: bool = False
    """Whether the decision waits for timers and young pods, as `run` does."""
    writes_sizes: bool = False
    """Whether this process writes the sizes of this recommendation."""
    has_lease: bool = False
    """Whether no other process of this installation writes sizes, because a Lease decides which one does."""
    began: float | None = None
    """When this process began to decide, in Unix seconds; None if nothing is written."""
    providers: tuple[PluginReading, ...] = ()
    """The statements of the providers of the recommendation's node groups, if it has any."""
    writes: Mapping[TargetReference, ScaleOutcome] = field(default_factory=dict)
    """The outcome of each write that earlier decisions requested."""
    sent: Collection[tuple[str, int]] | None = None
    """The text of the target, and the size, of each write that may have been sent since the last decision; None if
    that is not known."""
    last: ClusterSizeAnswer | None = None
    """The last answer of this process that was made from known facts."""
