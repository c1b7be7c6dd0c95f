"""The answer of a cluster size decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.cluster_size.model.groups import ScalableReference
    from recommender.cluster_size.model.memory import ClusterSizeMemory


@dataclass(frozen=True, slots=True)
class PodName:
    """Namespace and name of a pod."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """`shop/web-0`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class GroupSize:
    """What a decision means for one group."""

    name: str
    current: int | None
    """The target size; None while it is not known and the last recommendation is held."""
    recommended: int
    """With what pending pods need."""
    after_removals: int
    """And without the nodes that may go now."""
    min_size: int | None
    max_size: int | None
    reason: str
    """Why this size, in one sentence."""
    is_left_out: bool = False
    """Whether the group takes no part; the reason says why."""
    scalable: ScalableReference | None = None
    """Where the size can be written; None where it can only be recommended."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A node that may go."""

    node: str
    group: str
    utilization_ratio: float
    reason: str
    unneeded_seconds: float | None
    """How long it has been unneeded; None where nothing is remembered."""
    is_due: bool = True
    """Whether it goes now; if not, the reason says what it waits for."""
    moved_pods: int = 0
    """Pods that find a place elsewhere."""
    saved_per_hour: float | None = None
    """Price of the node; None where not all groups have one."""


@dataclass(frozen=True, slots=True)
class KeptNode:
    """A node that stays, and why."""

    node: str
    group: str
    reason: str
    """Identifier and sentence, such as `NotUnderutilized: 72 % of cpu is requested`."""
    pod: PodName | None = None
    """The pod that keeps it."""


@dataclass(frozen=True, slots=True)
class UnschedulablePods:
    """Pending pods that are alike and that no group can hold."""

    pods: tuple[PodName, ...]
    groups: Mapping[str, str]
    """By group, why not."""
    reason: str = ""
    """Why no group was asked, such as a missing claim; empty otherwise."""


@dataclass(frozen=True, slots=True)
class SizeStep:
    """One step on the way to the answer."""

    step: str
    """`round/N`, or the name of a limit or brake, such as `limits.cores`, `minSize` or `maxNodeProvisionTime`."""
    group: str
    """Empty where it concerns no single one."""
    value: float
    """Nodes of the group after this step."""
    detail: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What would be better and is not done by itself."""

    kind: str
    """`replace` a node by a smaller one, or `consolidate` several nodes."""
    nodes: tuple[str, ...]
    detail: str
    saved_per_hour: float | None = None


@dataclass(frozen=True, slots=True)
class LowerBound:
    """How far the answer can be from the optimum."""

    nodes: int
    """New nodes of the answer."""
    bound: int
    """No mix of groups holds the pods with fewer new nodes."""
    cost: float | None = None
    cost_bound: float | None = None
    """Likewise per hour, where all groups used have prices."""


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """What pending pods need."""

    increases: Mapping[str, int]
    """New nodes by group; groups without any are absent. Negative where requested nodes did not come in time, so that
    the size is put right."""
    steps: tuple[SizeStep, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    """By group, why it grows or not."""
    unschedulable: tuple[UnschedulablePods, ...] = ()
    waiting: tuple[PodName, ...] = ()
    """Pods that are too young to count."""
    not_looked_at: int = 0
    """How many of the unschedulable pods may have a place, as more of them are different than one decision looks at."""
    fitting_pods: int = 0
    """Pending pods for which there is a place on nodes that exist or are on their way."""
    helped_pods: int = 0
    """Pending pods that the new nodes hold."""
    bound: LowerBound | None = None
    binding: str | None = None
    """Name of the limit that keeps pods pending, else of the last step; None without steps."""
    hold: str = ""
    """Why nothing is decided, such as too many unready nodes; empty otherwise."""
    memory: ClusterSizeMemory | None = None
    """The memory with back-offs and corrected requests; None if nothing changed."""


@dataclass(frozen=True, slots=True)
class ScaleDownAnswer:
    """Which nodes may go."""

    removals: tuple[Removal, ...] = ()
    kept: tuple[KeptNode, ...] = ()
    advice: tuple[Advice, ...] = ()
    unneeded_since: Mapping[str, float] = field(default_factory=dict)
    unremovable_until: Mapping[str, float] = field(default_factory=dict)
    hold: str = ""
    """Why none goes now, such as a cool-down; empty otherwise."""


@dataclass(frozen=True, slots=True)
class ClusterSizeAnswer:
    """A whole answer."""

    groups: tuple[GroupSize, ...] = ()
    removals: tuple[Removal, ...] = ()
    kept: tuple[KeptNode, ...] = ()
    unschedulable: tuple[UnschedulablePods, ...] = ()
    waiting: tuple[PodName, ...] = ()
    steps: tuple[SizeStep, ...] = ()
    binding: str | None = None
    bound: LowerBound | None = None
    advice: tuple[Advice, ...] = ()
    saved_per_hour: float | None = None
    """By the removals that are due, where all groups compared have prices."""
    pending_pods: int = 0
    notes: tuple[str, ...] = ()
    """What the user should know, one sentence each."""
    hold: str = ""
    is_held: bool = False
    """Whether only the sizes of an earlier decision are stated, since the facts are not known now."""
    memory: ClusterSizeMemory | None = None
