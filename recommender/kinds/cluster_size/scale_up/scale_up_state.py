"""The state that changes from round to round: sizes, remainders of limits, and groups that may not grow."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.model.size_settings import CORES, MEMORY
from recommender.kinds.cluster_size.resource_limits import NODES, check_quota, counted_amounts, quota_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.kinds.cluster_size.model.answer import SizeStep
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.resource_limits import Quota, QuotaVerdict

MAX_SIZE: Final = "maxSize"
MAX_PER_SCALE_UP: Final = "maxNodesPerScaleUp"
_LIMIT_KEYS: Final = {NODES: "limits.nodes", CORES: "limits.cores", MEMORY: "limits.memory"}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a group cannot grow now."""

    step: str
    """The name of the limit; empty if the obstacle is not a limit."""
    reason: str


@dataclass(slots=True)
class SizingState:
    """Sizes and limits during one decision."""

    groups: Mapping[str, NodeGroup]
    """The groups by name; each has a template or a problem."""
    sizes: dict[str, int]
    """Target sizes with the nodes added so far."""
    quota: Quota
    """The rest of the limits, with the nodes added so far."""
    obstacles: dict[str, str]
    """Why a group is left out, by group; such a group stays left out within a decision."""
    unwritten: frozenset[str] = frozenset()
    """Groups whose sizes would be written but for a pause; they grow only for pods that no other group can hold."""
    most_nodes_per_scale_up: int = 1000
    increases: Counter[str] = field(default_factory=Counter)
    steps: list[SizeStep] = field(default_factory=list)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    """Why a group has grown, by group."""
    new_nodes: dict[str, str] = field(default_factory=dict)
    """The group of each node that this decision adds, by its name in the snapshot."""
    requested_nodes: dict[str, str] = field(default_factory=dict)
    """The group of each node that was requested before and does not exist yet, by its name in the snapshot."""
    counted: dict[str, dict[str, int]] = field(default_factory=dict)
    """By group, the amounts of one node that count towards limits."""

    def node_counts(self, group: NodeGroup) -> dict[str, int]:
        """Return the amounts of one node of a group that count towards limits; the group must have a template."""
        known = self.counted.get(group.name)
        if known is None:
            assert group.template is not None, "groups without a template are left out"
            known = self.counted[group.name] = counted_amounts(group.template.node)
        return known

    def room(self, group: NodeGroup) -> int:
        """Return how many nodes a group may add before it reaches its maximum."""
        return max(0, group.largest_size - self.sizes[group.name])

    def count_allowed(self, group: NodeGroup, wanted: int) -> QuotaVerdict:
        """Return how many nodes of a group the limits allow."""
        return check_quota(self.quota, self.node_counts(group), wanted)

    def grow(self, group: NodeGroup, count: int) -> None:
        """Count nodes that are added to a group."""
        self.quota = quota_after(self.quota, self.node_counts(group), count)
        self.sizes[group.name] += count
        self.increases[group.name] += count

    def beyond_one_scale_up(self, group: NodeGroup, wanted: int) -> str:
        """Return why an all-or-nothing group cannot get this many nodes at once; empty if it can."""
        if not group.options.zero_or_max or wanted <= self.most_nodes_per_scale_up:
            return ""
        return (
            f"all of its {wanted} nodes must be added at once, and {MAX_PER_SCALE_UP} is {self.most_nodes_per_scale_up}"
        )

    def obstacle(self, group: NodeGroup) -> Obstacle | None:
        """Return why a group cannot grow now; None if it can. An all-or-nothing group needs room for all nodes."""
        if group.name in self.obstacles:
            return Obstacle("", self.obstacles[group.name])
        room = self.room(group)
        if not room:
            return Obstacle(MAX_SIZE, f"its maximum of {count_of(group.max_size, 'node')} is reached")
        needed = room if group.options.zero_or_max else 1
        if beyond := self.beyond_one_scale_up(group, needed):
            return Obstacle(MAX_PER_SCALE_UP, beyond)
        verdict = self.count_allowed(group, needed)
        if verdict.allowed >= needed:
            return None
        limits = exceeded_limits(verdict)
        nodes = "another node" if needed == 1 else f"all of its {needed} nodes"
        return Obstacle(limits[0], f"{nodes} would exceed {', '.join(limits)}")

    def most_new_nodes(self, groups: Iterable[NodeGroup]) -> int:
        """Return how many nodes these groups may add together at once."""
        room = sum(map(self.room, groups))
        return min(self.most_nodes_per_scale_up, room, self.quota.get(NODES, room))


def exceeded_limits(verdict: QuotaVerdict) -> tuple[str, ...]:
    """Return the keys of the configuration that allow fewer nodes than are wanted."""
    return tuple(_LIMIT_KEYS.get(resource, f"limits.gpus[{resource}]") for resource in verdict.exceeded)
