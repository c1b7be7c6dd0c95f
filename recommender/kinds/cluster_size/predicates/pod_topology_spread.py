"""The plugin PodTopologySpread: constraints with `DoNotSchedule`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.pods_by_shape import Census
    from recommender.kinds.cluster_size.predicates.topology_counts import SpreadTally

_PLUGIN: Final = "PodTopologySpread"
_REASON: Final = "node(s) didn't match pod topology spread constraints"


@dataclass(frozen=True, slots=True)
class _Constraint:
    topology_key: str
    max_skew: int
    most: int
    """By how much a domain's count may exceed the smallest count before the pod is added."""
    tally: SpreadTally


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

    @property
    def minima(self) -> tuple[int, ...]:
        """The smallest count of all domains, for each constraint."""
        return tuple(one.tally.minimum for one in self._constraints)

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
            if one.tally.counts.get(value, 0) - one.tally.minimum > one.most:
                return (Refusal(_PLUGIN, _REASON, f"{one.topology_key}={value}", needs_other_node=False),)
        return ()
