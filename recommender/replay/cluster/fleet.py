"""The nodes of a replayed cluster as columns of numbers, and the scheduling of pods on them.

Scheduling follows the part of kube-scheduler's default profile that requests determine. A node must pass the filters
that consider only the node, and have the resources that the pod requests. Of several such nodes, the pod goes to the
one whose resources are then requested the least and the most evenly (NodeResourcesFit with LeastAllocated, and
NodeResourcesBalancedAllocation).
"""

from __future__ import annotations

import math
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
_ALL_AT_ONCE: Final = 12
_SLOTS_ONE_MORE: Final = 64
"""Changed slots are scored one by one up to `_ALL_AT_ONCE`, plus one for each `_SLOTS_ONE_MORE` slots in use; beyond
that, scoring all slots at once is faster."""
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
    numbers: memoryview[float]
    """The same scores, for access to single ones."""
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
        self._divisors = np.ones((2, _FIRST_SLOTS))
        """The CPU and memory that each slot offers, by which requests are divided; Inf instead of 0."""
        self.kind_of = np.zeros(_FIRST_SLOTS, dtype=np.int64)
        self.exists = np.zeros(_FIRST_SLOTS, dtype=np.bool_)
        self.usable = np.zeros(_FIRST_SLOTS, dtype=np.bool_)
        """Whether the node of each slot accepts pods: it is ready, and is not being removed."""
        self.pods: list[dict[int, int]] = [{} for _ in range(_FIRST_SLOTS)]
        """The numbers of the pods in each slot, with the kind of each."""
        self.end = 0
        """A number above those of all slots in use."""
        self._view()
        self.counts = [0] * len(kinds)
        """How many nodes there are of each kind."""
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
        self._divisors[:, slot] = np.where(self._offered[:2, kind] > 0, self._offered[:2, kind], np.inf)
        self.free[:, slot] = self._left[:, kind]
        self.exists[slot] = True
        self.counts[kind] += 1
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
        self.counts[self.kind_of.item(slot)] -= 1
        self.set_usable(slot, usable=False)
        self._unused.append(slot)
        return pods

    def _grow(self) -> None:
        more = len(self.exists)
        self.offered = np.concatenate([self.offered, np.zeros_like(self.offered)], axis=1)
        self.free = np.concatenate([self.free, np.zeros_like(self.free)], axis=1)
        self._divisors = np.concatenate([self._divisors, np.ones_like(self._divisors)], axis=1)
        self.kind_of = np.concatenate([self.kind_of, np.zeros_like(self.kind_of)])
        self.exists = np.concatenate([self.exists, np.zeros_like(self.exists)])
        self.usable = np.concatenate([self.usable, np.zeros_like(self.usable)])
        self.pods += [{} for _ in range(more)]
        self._known.clear()
        self._view()

    def _view(self) -> None:
        """Note the numbers of the arrays, which are read and changed one by one much faster than through NumPy."""
        self._offered_numbers = tuple(map(_numbers, self.offered))
        self._free_numbers = tuple(map(_numbers, self.free))

    def put(self, pod: int, kind: int, needs: PodNeeds, slot: int) -> None:
        """Put a pod on a node, whether or not there is room."""
        for row, amount in needs.asked:
            self._free_numbers[row][slot] -= amount
        self.pods[slot][pod] = kind
        self._touched.append(slot)

    def take(self, pod: int, needs: PodNeeds, slot: int) -> None:
        """Remove a pod from its node."""
        for row, amount in needs.asked:
            self._free_numbers[row][slot] += amount
        del self.pods[slot][pod]
        self._touched.append(slot)

    def place(self, pods: Iterable[int], kind: int, needs: PodNeeds) -> list[int]:
        """Put equal pods on nodes one after another until there is no room; return the slots of the placed ones."""
        known = self._scores_of(needs)
        scores, numbers = known.scores, known.numbers
        found: list[int] = []
        for pod in pods:
            slot = int(scores.argmax())
            if numbers[slot] == -math.inf:
                break
            self.put(pod, kind, needs, slot)
            found.append(slot)
            numbers[slot] = self._score(slot, needs) if self.has_room(slot, needs) else -math.inf
        known.seen = len(self._touched)
        return found

    def _scores_of(self, needs: PodNeeds) -> _KnownScores:
        """Return the current scores of all slots; if few slots changed, only their scores are calculated again."""
        if len(self._touched) > _LONGEST_LOG:
            self._touched.clear()
            self._known.clear()
        known = self._known.get(id(needs))
        if known is None:
            scores = np.full(len(self.usable), -np.inf)
            known = self._known[id(needs)] = _KnownScores(scores, _numbers(scores), -1)
        changed = set(self._touched[known.seen :])
        if known.seen < 0 or len(changed) > _ALL_AT_ONCE + self.end // _SLOTS_ONE_MORE:
            known.scores[: self.end] = self._all_scores(needs)
        else:
            for slot in changed:
                known.numbers[slot] = self._score(slot, needs) if self.takes(slot, needs) else -math.inf
        known.seen = len(self._touched)
        return known

    def _all_scores(self, needs: PodNeeds) -> FloatArray:
        """Return the score of each slot in use, -Inf for slots that cannot take a pod with these needs."""
        end = self.end
        free, fits = self.free[:, :end], self.usable[:end]
        if not needs.is_unbound:
            fits = fits & needs.allowed[self.kind_of[:end]]
        for row, amount in needs.asked:
            fits = fits & (free[row] >= amount)
        return np.where(fits, _scores(free, self.offered[:, :end], needs), -np.inf)

    def has_room(self, slot: int, needs: PodNeeds) -> bool:
        """Return whether a node has the resources that a pod requests."""
        free = self._free_numbers
        for row, amount in needs.asked:  # noqa: SIM110 - called for every pod, and a generator takes twice as long
            if free[row][slot] < amount:
                return False
        return True

    def takes(self, slot: int, needs: PodNeeds) -> bool:
        """Return whether a node can take a pod with these needs now."""
        if not self.usable.item(slot) or not (needs.is_unbound or needs.allowed.item(self.kind_of.item(slot))):
            return False
        return self.has_room(slot, needs)

    def _score(self, slot: int, needs: PodNeeds) -> float:
        """Return the score of `_scores` for a single node, which is needed much more often."""
        free, offered = self._free_numbers, self._offered_numbers
        offered_cores, offered_memory = offered[0][slot], offered[1][slot]
        if not offered_cores or not offered_memory:
            return float(_scores(self.free[:, slot, None], self.offered[:, slot, None], needs)[0])
        cores = (free[0][slot] - needs.scored[0]) / offered_cores
        memory = (free[1][slot] - needs.scored[1]) / offered_memory
        return cores + memory + 2 - abs(cores - memory)

    def has_unusable(self) -> bool:
        """Whether some node is not ready, or is being removed."""
        return int(np.count_nonzero(self.exists)) != int(np.count_nonzero(self.usable))

    def shares(self) -> tuple[FloatArray, FloatArray]:
        """Return the share of CPU and of memory that is requested in each slot; 0 for a slot without a node."""
        offered, free = self.offered[:2, : self.end], self.free[:2, : self.end]
        cores, memory = (offered - free) / self._divisors[:, : self.end]
        return cores, memory


def _numbers(row: FloatArray) -> memoryview[float]:
    return row.data.cast("B").cast("d")


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
