"""Places for pods that must move: which node takes the next pod of a shape.

A node that cannot hold a shape is not tried again until a placement on it was undone, and a block of nodes without room
for it is skipped as a whole. So the work is far less than pods times nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.labelled_nodes import LabelledNodes
from recommender.kinds.cluster_size.scale_down.block_free_resources import BLOCK, BlockRooms, requested_resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.foundation.cluster.values.constraints import PodScheduling
    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.predicates.node_only_filters import StaticFilter
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot

_ACROSS_NODES: Final = frozenset({"PodTopologySpread", "InterPodAffinity", "VolumeRestrictions"})
"""The plugins whose verdict on a node depends on pods of other nodes."""

_CHECKS_TO_TIGHTEN: Final = 4
"""With fewer checks than this, making a bound exact costs more than it saves."""

_Likeness: TypeAlias = "tuple[StaticFilter, tuple[tuple[str, int], ...]]"
FULL: Final = "none of the other nodes has room for it"
_OPEN: Final = 0
_CLOSED: Final = 1


class _Search:
    """The state of the search for one shape, or for all independent shapes with equal requests and static filters."""

    def __init__(self, pod_filter: PodFilter, shape: PodShape, static: StaticFilter, refused: bytearray) -> None:
        """Begin a search; `refused` are the destinations whose labels or taints have refused equivalent shapes."""
        count = len(refused)
        self.filter = pod_filter
        self.is_independent = pod_filter.is_independent
        self.fits = pod_filter.fits
        self.refusal = pod_filter.problem
        self.requests = tuple(shape.requests.items())
        self.cpu, self.memory = requested_resources(shape)
        self.static = static
        self.refused = refused
        """The refusals, shared by all shapes with the same static filter, so that no node is tried again for each of
        them."""
        self.closed = bytearray(refused)
        """Whether a destination can take no further pod, whatever happens elsewhere."""
        self.across = bytearray(0 if self.is_independent else count)
        """Whether a destination has refused because of pods on other nodes; empty for independent shapes."""
        self.starts: dict[str, int] = {}
        """By zone, where the last pod that left a node of that zone was placed."""

    def refuses_for_good(self, number: int, info: NodeInfo) -> bool:
        """Return whether a node that has refused a dependent shape will refuse it despite changes on other nodes."""
        allocatable, requested = info.allocatable, info.requested
        if any(amount > allocatable.get(name, 0) - requested.get(name, 0) for name, amount in self.requests):
            return True
        if not self.across[number] and self.filter.refusals(info)[0].plugin in _ACROSS_NODES:
            self.across[number] = 1
        return not self.across[number]


class PodPlaces:
    """Destinations in the order in which they are tried, with the results so far.

    Between `begin` and `commit` or `roll_back`, pods leave nodes and are placed. The snapshot must be reverted before
    `roll_back`.
    """

    def __init__(self, snapshot: Snapshot, destinations: Sequence[str], most_checks: int) -> None:
        """Run filters at most `most_checks` times; after that, `is_exhausted` holds and no further place is found.

        Destinations that are not in the snapshot count as removed.
        """
        self._snapshot = snapshot
        self._names = tuple(name for name in destinations if name in snapshot.nodes)
        self._infos = tuple(snapshot.nodes[name] for name in self._names)
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._gone = bytearray(len(self._names))
        self._searches: dict[PodShape, _Search] = {}
        self._independent: dict[_Likeness, _Search] = {}
        """The searches of independent shapes, which differ by the static filter and the requests alone."""
        self._refused: dict[StaticFilter, bytearray] = {}
        """Whether a destination is known to refuse, by static filter."""
        self._labelled = LabelledNodes(self._infos)
        self._checks_left = most_checks
        self._leaving: tuple[int, ...] = ()
        self._taken: set[int] = set()
        self._closings: list[tuple[_Search, int, int]] = []
        """Searches with the range of destinations that they closed."""
        self._rooms = BlockRooms(snapshot, self._names)

    @property
    def is_exhausted(self) -> bool:
        """Whether the bound on the work has been reached."""
        return self._checks_left <= 0

    def prepare(self, shape: PodShape) -> str | None:
        """Register a shape while all its pods are in place; return why it fits nowhere, or None if it may fit."""
        search = self._searches.get(shape)
        if search is None:
            search = self._searches[shape] = self._new_search(shape)
        if search.refusal:
            return search.refusal.reason
        return FULL if search.closed.find(_OPEN) < 0 else None

    def _new_search(self, shape: PodShape) -> _Search:
        """Return a search for the shape; independent shapes with equal filters and requests share one search.

        Each search holds data about every destination, and a cluster has far more workloads than distinct requests.
        """
        static = self._snapshot.static_filter(shape.scheduling)
        refused = self._refused.get(static)
        if refused is None:
            refused = self._refused[static] = self._refused_by_labels(shape.scheduling)
        pod_filter = PodFilter(self._snapshot, shape)
        if not pod_filter.is_independent:
            return _Search(pod_filter, shape, static, refused)
        likeness = static, tuple(shape.requests.items())
        found = self._independent.get(likeness)
        if found is None:
            found = self._independent[likeness] = _Search(pod_filter, shape, static, refused)
        return found

    def _refused_by_labels(self, scheduling: PodScheduling) -> bytearray:
        refused = bytearray(b"\x01" * len(self._names))
        for number in self._labelled.selected(scheduling):
            refused[number] = _OPEN
        return refused

    def is_independent(self, shape: PodShape) -> bool:
        """Return whether places for the shape depend only on the free resources of each node."""
        return self._searches[shape].is_independent

    def begin(self, leaving: Iterable[str]) -> None:
        """Start emptying nodes; from now on, none of them takes a pod."""
        self._leaving = tuple(self._numbers[name] for name in leaving if name in self._numbers)
        for number in self._leaving:
            self._gone[number] = _CLOSED
        self._taken.clear()
        self._closings.clear()

    def commit(self) -> None:
        """Keep all changes since `begin`."""
        self._leaving = ()

    def roll_back(self) -> None:
        """Forget the changes since `begin`; the snapshot was reverted already."""
        for number in self._leaving:
            self._gone[number] = _OPEN
        reopened = self._taken.union(self._leaving)
        for search, start, end in self._closings:
            for number in reopened:
                if start <= number < end:
                    search.closed[number] = _OPEN
        self._rooms.widen(reopened)
        self._leaving = ()

    def place(self, pod: ClusterPod, shape: PodShape, zone: str) -> str | None:
        """Put a pod that has left its node in `zone` on the first node that can take it; return that node's name."""
        search = self._searches[shape]
        start = search.starts.get(zone, 0)
        number = self._first(search, start, len(self._names))
        if number is None and start:
            number = self._first(search, 0, start)
        if number is None:
            return None
        if not search.is_independent:
            search.starts[zone] = number
        self._taken.add(number)
        name = self._names[number]
        self._snapshot.place(pod, name)
        return name

    def _first(self, search: _Search, start: int, end: int) -> int | None:
        infos, closed = self._infos, search.closed
        number = closed.find(_OPEN, start, end)
        asked_block, checks = -1, 0
        while number >= 0 and self._checks_left > 0:
            block = number // BLOCK
            if block != asked_block:
                self._leave(asked_block, checks)
                asked_block, checks = block, 0
                found = self._rooms.next_block(block, search.cpu, search.memory)
                if found != block:
                    beyond = len(closed) if found is None else found * BLOCK
                    self._close(search, number, beyond)
                    number = closed.find(_OPEN, beyond, end)
                    continue
            checks += 1
            if self._gone[number]:
                self._close(search, number, number + 1)
            else:
                self._checks_left -= 1
                if search.fits(infos[number]):
                    return number
                if search.static.refusals(infos[number]):
                    search.refused[number] = _CLOSED
                if search.is_independent or search.refuses_for_good(number, infos[number]):
                    self._close(search, number, number + 1)
            number = closed.find(_OPEN, number + 1, end)
        self._leave(asked_block, checks)
        return None

    def _leave(self, block: int, checks: int) -> None:
        """Update the bound of a block that was examined in vain."""
        if checks >= _CHECKS_TO_TIGHTEN:
            self._rooms.tighten(block)

    def _close(self, search: _Search, start: int, end: int) -> None:
        search.closed[start:end] = b"\x01" * (end - start)
        if self._closings:
            # Most of them are neighbours of the previous one.
            last, first, until = self._closings[-1]
            if last is search and until == start:
                self._closings[-1] = (search, first, end)
                return
        self._closings.append((search, start, end))
