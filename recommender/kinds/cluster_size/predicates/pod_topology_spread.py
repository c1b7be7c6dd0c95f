"""The plugin PodTopologySpread: constraints with `DoNotSchedule`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL
from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.pods_by_shape import Census
    from recommender.kinds.cluster_size.predicates.topology_counts import SpreadTally

SharedDomains: TypeAlias = tuple[str | None, ...]
"""A node's values of the topology keys of a shape's constraints but for the host name; None where it has no value."""
_PLUGIN: Final = "PodTopologySpread"
_REASON: Final = "node(s) didn't match pod topology spread constraints"


@dataclass(frozen=True, slots=True)
class _Constraint:
    topology_key: str
    max_skew: int
    most: int
    """By how much a domain's count may exceed the smallest count before the pod is added."""
    tally: SpreadTally

    def admits(self, value: str) -> bool:
        """Return whether a domain may get another pod."""
        return self.tally.counts.get(value, 0) - self.tally.minimum <= self.most


class SpreadFilter:
    """The spread constraints of one shape."""

    def __init__(self, census: Census, shape: PodShape) -> None:
        self._constraints = tuple(
            _Constraint(
                one.topology_key,
                one.max_skew,
                one.max_skew - (one.selector is not None and one.selector.matches(shape.labels)),
                census.of_spread(shape, one),
            )
            for one in shape.scheduling.spread
        )
        self._hosts = tuple(one for one in self._constraints if one.topology_key == HOSTNAME_LABEL)
        self._shared = tuple(one for one in self._constraints if one.topology_key != HOSTNAME_LABEL)

    @property
    def label_keys(self) -> frozenset[str]:
        """The labels of a node that decide, if the shape's own node affinity and tolerations allow the node."""
        return frozenset(one.topology_key for one in self._constraints)

    @property
    def minima(self) -> tuple[int, ...]:
        """The smallest count of all domains, for each constraint."""
        return tuple(one.tally.minimum for one in self._constraints)

    @property
    def host_minima(self) -> tuple[int, ...]:
        """The smallest count of all hosts, for each constraint whose domains are hosts."""
        return tuple(one.tally.minimum for one in self._hosts)

    @property
    def is_kept(self) -> bool:
        """Whether no domain has more pods than a constraint allows with all nodes that there are now."""
        return all(
            max(one.tally.counts.values(), default=0) - one.tally.minimum <= one.max_skew for one in self._constraints
        )

    def refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        """Return the refusal by the first constraint that a pod on the node would violate."""
        for one in self._constraints:
            value = info.node.labels.get(one.topology_key)
            if value is None:
                return (Refusal(_PLUGIN, f"{_REASON} (missing required label)", one.topology_key),)
            if not one.admits(value):
                return (Refusal(_PLUGIN, _REASON, f"{one.topology_key}={value}"),)
        return ()

    def fits(self, info: NodeInfo) -> bool:
        """Return whether no constraint refuses a pod on the node. This is faster than `refusals`."""
        labels = info.node.labels
        for one in self._constraints:
            value = labels.get(one.topology_key)
            if value is None or not one.admits(value):
                return False
        return True

    def shared_domains(self, info: NodeInfo) -> SharedDomains:
        """Return the node's domains, without its host."""
        labels = info.node.labels
        return tuple(labels.get(one.topology_key) for one in self._shared)

    def admits(self, domains: SharedDomains) -> bool:
        """Return whether constraints allow another pod in these domains; a node of them may still refuse it."""
        return all(value is not None and one.admits(value) for one, value in zip(self._shared, domains, strict=True))
