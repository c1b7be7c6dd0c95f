"""The answer of a cluster size decision."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final

from adapter.foundation.reports.counts import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.decisions.record import Record, TargetReference
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
    from recommender.kinds.cluster_size.model.pod_places import PodMove, PodName, PodPlace, UnavailableNode

SCALE_DOWN: Final = "scaleDown"
"""The name of the binding step of an answer that only removes nodes."""


@dataclass(frozen=True, slots=True)
class GroupSize:
    """The result of a decision for one group."""

    name: str
    current: int | None
    """The target size; None while it is not known and the last recommendation is held."""
    recommended: int
    """The size with the nodes that pending pods need."""
    after_removals: int
    """The recommended size without the nodes that can be removed now."""
    min_size: int | None
    max_size: int | None
    reason: str
    """Why the group gets this size, in one sentence."""
    is_left_out: bool = False
    """Whether the group is left out; the reason says why."""
    scalable: TargetReference | None = None
    """Where the size can be written; None if it can only be recommended."""
    registered: int | None = None
    """How many Node objects the group has; None while that is not known."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A removable node."""

    node: str
    group: str
    utilization_ratio: float
    reason: str
    unneeded_seconds: float | None
    """How long the node has been unneeded; None if nothing is remembered."""
    is_due: bool = True
    """Whether the node is removed now; if not, the reason says why it waits."""
    moves: tuple[PodMove, ...] = ()
    """The pods that must move, with their new nodes."""
    saved_per_hour: float | None = None
    """The price of the node; None unless all groups have a price."""

    @property
    def moved_pods(self) -> int:
        """How many pods find a place elsewhere."""
        return len(self.moves)


@dataclass(frozen=True, slots=True)
class FailedMachine:
    """A machine that cannot be created, or that has not become a node in time."""

    provider_id: str
    group: str
    failure: str
    waits: str = ""
    """Why the machine is not deleted now; empty if it is."""
    is_creation_error: bool = False
    """Whether its provider states that the machine cannot be created."""

    @property
    def is_due(self) -> bool:
        """Whether the machine is deleted now."""
        return not self.waits

    def as_waiting(self, reason: str) -> FailedMachine:
        """Return the machine, which is not deleted now."""
        return replace(self, waits=reason)


@dataclass(frozen=True, slots=True)
class KeptNode:
    """A node that stays, and why."""

    node: str
    group: str
    reason: str
    """Identifier and sentence, such as `NotUnderutilized: 72% of cpu is requested`."""
    pod: PodName | None = None
    """The pod that keeps the node; None if no pod does."""


@dataclass(frozen=True, slots=True)
class UnschedulablePods:
    """Pending pods that are alike and for which no node is added, mostly because no group can hold them."""

    pods: tuple[PodName, ...]
    groups: Mapping[str, str]
    """Why no node of a group can hold them, by group."""
    reason: str = ""
    """Why no group was tried, such as a missing claim; empty otherwise."""
    missing: str = ""
    """The label or resource that no group has, or the limit that is reached, in one sentence; empty with a `reason`."""
    is_left_out: bool = False
    """Whether a group may be able to hold them: no node was sought for them, or only the limit of rounds is reached."""
    private: frozenset[str] = frozenset()
    """The groups whose reason may quote their provider, so that it is not for everybody who may read a pod's events."""


@dataclass(frozen=True, slots=True)
class SizeStep:
    """One step on the way to the answer."""

    step: str
    """`round/N`, or the name of a limit or brake, such as `limits.cores`, `minSize` or `maxNodeProvisionTime`."""
    group: str
    """The group; empty if the step concerns several groups."""
    value: float
    """The number of nodes of the group after this step."""
    detail: str


@dataclass(frozen=True, slots=True)
class Advice:
    """A cheaper alternative, which is not carried out automatically."""

    kind: str
    """`replace` a node by a smaller one, or `consolidate` several nodes."""
    nodes: tuple[str, ...]
    detail: str
    saved_per_hour: float | None = None


@dataclass(frozen=True, slots=True)
class LowerBound:
    """How far the answer can be from the optimum."""

    nodes: int
    """The number of new nodes in the answer."""
    bound: int
    """The lower bound: no mix of groups holds the pods with fewer new nodes."""
    cost: float | None = None
    """The cost of the new nodes per hour; None without prices of all groups used."""
    cost_bound: float | None = None
    """The lower bound of the cost per hour; None without prices of all groups used, or if it would take too long."""


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """The scale-up that pending pods need."""

    increases: Mapping[str, int]
    """New nodes by group; groups without any are absent. A number is negative if requested nodes did not arrive in
    time, so that the size is corrected."""
    steps: tuple[SizeStep, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a group grows or does not grow, by group."""
    unschedulable: tuple[UnschedulablePods, ...] = ()
    places: tuple[PodPlace, ...] = ()
    """The pods without a node for which one was found."""
    waiting: tuple[PodName, ...] = ()
    """Pods that are too young to count."""
    waits_until: float | None = None
    """When the first of the waiting pods counts, in Unix seconds; None if no pod is waiting."""
    new_pods: tuple[PodName, ...] = ()
    """The young pods that may still need the existing nodes. A pod that only its own annotation delays keeps no node,
    and neither does one that no group could ever hold."""
    not_looked_at: int = 0
    """How many pods were not looked at because their namespaces had no turn; if there are any, no node is removed. Pods
    of a namespace that has used up its share do not prevent removals."""
    fitting_pods: int = 0
    """Pending pods for which there is a place on nodes that exist or are on their way."""
    helped_pods: int = 0
    """Pending pods that the new nodes hold."""
    bound: LowerBound | None = None
    binding: str | None = None
    """The name of the limit that keeps pods pending, or of the last step if no limit does; None if there is neither."""
    hold: str = ""
    """Why nothing is decided, such as too many unready nodes; empty otherwise."""
    memory: ClusterSizeMemory | None = None
    """The memory with back-offs and corrected requests; None if nothing changed."""


@dataclass(frozen=True, slots=True)
class ScaleDownAnswer:
    """The removable nodes."""

    removals: tuple[Removal, ...] = ()
    kept: tuple[KeptNode, ...] = ()
    advice: tuple[Advice, ...] = ()
    unneeded_since: Mapping[str, float] = field(default_factory=dict)
    unremovable_until: Mapping[str, float] = field(default_factory=dict)
    new_nodes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By namespace and name, the final node of each pod that ran, or was placed, on a node that is removed now."""
    hold: str = ""
    """The reason why no node is removed now, such as a cool-down; empty otherwise."""


@dataclass(frozen=True, slots=True)
class ClusterSizeAnswer:
    """A whole answer: the details of a record of this kind."""

    has_value: ClassVar[bool] = True

    groups: tuple[GroupSize, ...] = ()
    removals: tuple[Removal, ...] = ()
    kept: tuple[KeptNode, ...] = ()
    failed_machines: tuple[FailedMachine, ...] = ()
    """The machines of providers' groups that have failed."""
    unschedulable: tuple[UnschedulablePods, ...] = ()
    expected: frozenset[PodName] = frozenset()
    """The pods among `unschedulable` that do not exist: of forecasts, reserves and assumptions."""
    places: tuple[PodPlace, ...] = ()
    """The pods without a node for which one was found."""
    unavailable: tuple[UnavailableNode, ...] = ()
    displaced: Mapping[PodName, str] = field(default_factory=dict)
    """The node of each pod that a what-if question displaces and for which there is no other place."""
    waiting: tuple[PodName, ...] = ()
    waits_until: float | None = None
    """When the first of the waiting pods counts, in Unix seconds; None if no pods wait."""
    steps: tuple[SizeStep, ...] = ()
    binding: str | None = None
    """The binding limit or step, as in `ScaleUp`; if there is none, `SCALE_DOWN` if a node is removed now."""
    bound: LowerBound | None = None
    advice: tuple[Advice, ...] = ()
    saved_per_hour: float | None = None
    """The savings of the removals that are due, if all groups compared have prices."""
    pending_pods: int = 0
    notes: tuple[str, ...] = ()
    """Notes for the user, one sentence each."""
    hold: str = ""
    is_held: bool = False
    """Whether the answer only repeats the sizes of an earlier decision, because the facts are not known now."""
    memory: ClusterSizeMemory | None = None

    def existing_pods(self, alike: UnschedulablePods) -> UnschedulablePods:
        """Return those of the pods that exist; perhaps none."""
        return replace(alike, pods=tuple(pod for pod in alike.pods if pod not in self.expected))

    @property
    def unheld_pods(self) -> int:
        """How many pods no group can hold."""
        return sum(len(alike.pods) for alike in self.unschedulable if not alike.is_left_out)


def answer_of(record: Record | None) -> ClusterSizeAnswer | None:
    """Return the answer of a record; None if it has none."""
    return record.details if record is not None and isinstance(record.details, ClusterSizeAnswer) else None


def savings_per_hour(removals: Iterable[Removal]) -> float | None:
    """Return the hourly savings of the removals that are due; None if a price is missing, or nothing is due."""
    prices = [removal.saved_per_hour for removal in removals if removal.is_due]
    known = [price for price in prices if price is not None]
    return sum(known) if known and len(known) == len(prices) else None


def nodes_of(answer: ClusterSizeAnswer) -> tuple[int | None, int | None]:
    """Return how many nodes the groups should have together, after removals, and how many they have now.

    Groups that are left out count for neither. None if there is no group, or if not all current sizes are known.
    """
    groups = [group for group in answer.groups if not group.is_left_out]
    if not groups:
        return None, None
    present = [group.current for group in groups if group.current is not None]
    return sum(group.after_removals for group in groups), sum(present) if len(present) == len(groups) else None


def sizes_text(answer: ClusterSizeAnswer) -> str:
    """Return how many nodes the groups should have together, after removals: `8 nodes in 3 groups`."""
    groups = [group for group in answer.groups if not group.is_left_out]
    nodes = sum(group.after_removals for group in groups)
    return f"{count_of(nodes, 'node')} in {count_of(len(groups), 'group')}"


def summary_text(answer: ClusterSizeAnswer) -> str:
    """Return the answer in one sentence."""
    grown = [
        f"{group.name} from {group.current} to {group.recommended}"
        for group in answer.groups
        if group.current is not None and group.recommended > group.current
    ]
    due = sum(removal.is_due for removal in answer.removals)
    pending = answer.unheld_pods
    parts = [
        f"grow {', '.join(grown)}" if grown else "",
        f"{count_of(due, 'removable node')}" if due else "",
        f"{count_of(pending, 'pod')} that no group can hold" if pending else "",
    ]
    return "; ".join(part for part in parts if part) or "no node group changes"
