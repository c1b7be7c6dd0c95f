"""The nodes of a replayed cluster as columns of numbers, and the scheduling of pods on them.

Scheduling follows the part of kube-scheduler's default profile that requests determine. A node must pass the filters
that consider only the node, and have the resources that the pod requests. Of several such nodes, the pod goes to the
one whose resources are then requested the least and the most evenly (NodeResourcesFit with LeastAllocated, and
NodeResourcesBalancedAllocation).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.cluster_size.model.size_settings import CORES, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.kinds.predictive.arrays import FloatArray

PODS: Final = "pods"
_FIRST_SLOTS: Final = 64
_MOST_ONE_BY_ONE: Final = 32
"""Up to this many changed slots are scored one by one; for more, all slots are scored at once."""
_LONGEST_LOG: Final = 10_000


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes that are equal for every pod."""

    node: ClusterNode
    group: str
    """The group of the nodes; empty for nodes outside of all groups."""
    daemons: tuple[ClusterPod, ...]
    """The DaemonSet and static pods that each such node has from the start."""
    offered: Mapping[str, float]
    """The allocatable resources."""
    reserved: Mapping[str, float]
    """The requests of the daemons."""


@dataclass(frozen=True, slots=True)
class PodNeeds:
    """The requests of the pods of one kind, and the nodes on which they may run."""

    amounts: FloatArray
    """Amounts by resource, in the order of the fleet."""
    scored: tuple[float, float]
    """The CPU and memory that the scheduler's scores count for a pod."""
    allowed: npt.NDArray[np.bool_]
    """Whether the pods may run on each kind of node."""
    asked: tuple[tuple[int, float], ...]
    """The amounts above 0, each after its index in `amounts`."""
    is_unbound: bool
    """Whether the pods may run on every kind of node."""


@dataclass(slots=True)
class _KnownScores:
    """The scores that all slots had for pods with certain needs when they were last calculated."""

    scores: FloatArray
    seen: int
    """How many of the fleet's logged changes these scores include."""


class NodeFleet:
    """Nodes in numbered slots, each with its pods and remaining resources. Slots are reused."""

    def __init__(self, resources: Sequence[str], kinds: Sequence[NodeKind]) -> None:
        """Begin without nodes; the first three resources are CPU, memory and pods."""
        assert tuple(resources[:3]) == (CORES, MEMORY, PODS), "the scores read the first two"
        self.kinds = kinds
        self._offered = np.array([[kind.offered.get(one, 0.0) for one in resources] for kind in kinds]).T
        self._left = self._offered - np.array([[kind.reserved.get(one, 0.0) for one in resources] for kind in kinds]).T
        self.offered = np.zeros((len(resources), _FIRST_SLOTS))
        self.free = np.zeros((len(resources), _FIRST_SLOTS))
        self.kind_of = np.zeros(_FIRST_SLOTS, dtype=np.int64)
        self.exists = np.zeros(_FIRST_SLOTS, dtype=np.bool_)
        self.usable = np.zeros(_FIRST_SLOTS, dtype=np.bool_)
        """Whether the node of each slot accepts pods: it is ready, and is not being removed."""
        self.pods: list[dict[int, int]] = [{} for _ in range(_FIRST_SLOTS)]
        """The numbers of the pods in each slot, with the kind of each."""
        self.end = 0
        """A number above those of all slots in use."""
        self._unused: list[int] = []
        self._touched: list[int] = []
        """Log of the slots that changed, in order; cleared when it gets long."""
        self._known: dict[int, _KnownScores] = {}
        """Scores by the `id` of the needs: a scene keeps its needs alive, and represents equal needs by one object."""

    def add(self, kind: int, *, ready: bool) -> int:
        """Add a node and return its slot."""
        slot = self._unused.pop() if self._unused else self.end
        if slot == len(self.exists):
            self._grow()
        self.end = max(self.end, slot + 1)
        self.kind_of[slot] = kind
        self.offered[:, slot] = self._offered[:, kind]
        self.free[:, slot] = self._left[:, kind]
        self.exists[slot] = True
        self.set_usable(slot, usable=ready)
        return slot

    def set_usable(self, slot: int, *, usable: bool) -> None:
        """Set whether a node accepts pods from now on."""
        self.usable[slot] = usable
        self._touched.append(slot)

    def remove(self, slot: int) -> dict[int, int]:
        """Remove a node and return its pods."""
        pods, self.pods[slot] = self.pods[slot], {}
        self.exists[slot] = False
        self.set_usable(slot, usable=False)
        self._unused.append(slot)
        return pods

    def _grow(self) -> None:
        more = len(self.exists)
        self.offered = np.concatenate([self.offered, np.zeros_like(self.offered)], axis=1)
        self.free = np.concatenate([self.free, np.zeros_like(self.free)], axis=1)
        self.kind_of = np.concatenate([self.kind_of, np.zeros_like(self.kind_of)])
        self.exists = np.concatenate([self.exists, np.zeros_like(self.exists)])
        self.usable = np.concatenate([self.usable, np.zeros_like(self.usable)])
        self.pods += [{} for _ in range(more)]
        self._known.clear()

    def put(self, pod: int, kind: int, needs: PodNeeds, slot: int) -> None:
        """Put a pod on a node, whether or not there is room."""
        self.free[:, slot] -= needs.amounts
        self.pods[slot][pod] = kind
        self._touched.append(slot)

    def take(self, pod: int, needs: PodNeeds, slot: int) -> None:
        """Remove a pod from its node."""
        self.free[:, slot] += needs.amounts
        del self.pods[slot][pod]
        self._touched.append(slot)

    def place(self, pods: Iterable[int], kind: int, needs: PodNeeds) -> list[int]:
        """Put equal pods on nodes one after another until there is no room; return the slots of the placed ones."""
        known = self._scores_of(needs)
        scores = known.scores
        found: list[int] = []
        for pod in pods:
            slot = int(scores.argmax())
            if scores[slot] == -np.inf:
                break
            self.put(pod, kind, needs, slot)
            found.append(slot)
            scores[slot] = self._score(slot, needs) if self.has_room(slot, needs) else -np.inf
        known.seen = len(self._touched)
        return found

    def _scores_of(self, needs: PodNeeds) -> _KnownScores:
        """Return the present scores of all slots; if only a few slots changed, only their scores are recalculated."""
        known = self._known.get(id(needs))
        changed = self._touched[known.seen :] if known is not None else ()
        if len(self._touched) > _LONGEST_LOG:
            self._touched.clear()
            self._known.clear()
            known = None
        if known is None or len(changed) > _MOST_ONE_BY_ONE:
            known = self._known[id(needs)] = _KnownScores(self._all_scores(needs), 0)
        else:
            for slot in set(changed):
                known.scores[slot] = self._score(slot, needs) if self.takes(slot, needs) else -np.inf
        known.seen = len(self._touched)
        return known

    def _all_scores(self, needs: PodNeeds) -> FloatArray:
        """Return the score of each slot, -Inf for slots that cannot take a pod with these needs."""
        end = self.end
        free, found = self.free[:, :end], np.full(len(self.usable), -np.inf)
        fits = self.usable[:end] & needs.allowed[self.kind_of[:end]]
        for row, amount in needs.asked:
            fits &= free[row] >= amount
        found[:end] = np.where(fits, _scores(free, self.offered[:, :end], needs), -np.inf)
        return found

    def has_room(self, slot: int, needs: PodNeeds) -> bool:
        """Return whether a node has the resources that a pod requests."""
        free = self.free
        for row, amount in needs.asked:  # noqa: SIM110 - called for every pod, and a generator takes twice as long
            if free.item(row, slot) < amount:
                return False
        return True

    def takes(self, slot: int, needs: PodNeeds) -> bool:
        """Return whether a node can take a pod with these needs now."""
        return bool(self.usable[slot] and needs.allowed[self.kind_of[slot]]) and self.has_room(slot, needs)

    def _score(self, slot: int, needs: PodNeeds) -> float:
        """Return the score of `_scores` for a single node, which is needed much more often."""
        offered_cores, offered_memory = self.offered.item(0, slot), self.offered.item(1, slot)
        if not offered_cores or not offered_memory:
            return float(_scores(self.free[:, slot, None], self.offered[:, slot, None], needs)[0])
        cores = (self.free.item(0, slot) - needs.scored[0]) / offered_cores
        memory = (self.free.item(1, slot) - needs.scored[1]) / offered_memory
        return cores + memory + 2 - abs(cores - memory)

    def has_unusable(self) -> bool:
        """Whether some node is not ready, or is being removed."""
        return int(np.count_nonzero(self.exists)) != int(np.count_nonzero(self.usable))

    def counts(self) -> npt.NDArray[np.int64]:
        """Return how many nodes there are of each kind."""
        kinds = self.kind_of[: self.end][self.exists[: self.end]]
        return np.asarray(np.bincount(kinds, minlength=len(self.kinds)))

    def shares(self) -> tuple[FloatArray, FloatArray]:
        """Return the share of CPU and of memory that is requested in each slot; 0 for a slot without a node."""
        offered, free = self.offered[:2, : self.end], self.free[:2, : self.end]
        cores, memory = np.divide(offered - free, offered, out=np.zeros_like(free), where=offered > 0)
        return cores, memory


def _scores(free: FloatArray, offered: FloatArray, needs: PodNeeds) -> FloatArray:
    """Return twice the sum of two scores from 0 to 1: LeastAllocated and BalancedAllocation with the pod on the node.

    A score is meaningful only for a node on which the pod fits. For other nodes the calculation may divide by zero,
    which the caller must allow.
    """
    cores = (free[0] - needs.scored[0]) / offered[0]
    memory = (free[1] - needs.scored[1]) / offered[1]
    scores = cores + memory
    scores += 2
    cores -= memory
    scores -= np.abs(cores, out=cores)
    return np.asarray(scores)
