"""All filters together, in the order of the scheduler's default profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.predicates.inter_pod_affinity import InterPodFilter
from recommender.kinds.cluster_size.predicates.node_affinity import CONFLICT
from recommender.kinds.cluster_size.predicates.node_resources_fit import (
    has_resources,
    resource_refusals,
    room_by_resources,
)
from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal
from recommender.kinds.cluster_size.predicates.pod_topology_spread import SpreadFilter
from recommender.kinds.cluster_size.predicates.volumes.volume_filter import VolumeFilter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.constraints import HostPort
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.pod_topology_spread import SharedDomains
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot

_PORT_REFUSALS: Final = (Refusal("NodePorts", "node(s) didn't have free ports for the requested pod ports"),)
_ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104 - compared, never listened on
_DEVICES: Final = Refusal("DynamicResources", "what the pod's ResourceClaims need cannot be judged")
"""This is not one of the scheduler's reasons: dynamic resource allocation is not modelled."""


class PodFilter:
    """Judges nodes for pods of one shape. Follows all changes of the snapshot."""

    def __init__(self, snapshot: Snapshot, shape: PodShape) -> None:
        scheduling = shape.scheduling
        self._snapshot = snapshot
        self._shape = shape
        self._static = snapshot.static_filter(scheduling)
        self._ports = scheduling.host_ports
        self._spread = SpreadFilter(snapshot.census, shape) if scheduling.spread else None
        self._others = InterPodFilter(snapshot.census, shape)
        has_volumes = bool(scheduling.claims or scheduling.inline_volumes)
        self._volumes = VolumeFilter(snapshot.storage, snapshot.census.claim_uses, shape) if has_volumes else None
        self.problem = self._first_problem()
        """Why no node at all can take the pod, such as a missing claim; None otherwise."""
        # Affinity does not keep further pods from a node on which one of them fits.
        self._hinders_itself = bool(self._ports or scheduling.spread or scheduling.anti_affinity or has_volumes)
        self._is_plain = not (self._hinders_itself or scheduling.affinity or self.problem)

    def refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        """Return why the node cannot take a pod, as the scheduler states it; empty if it can.

        The reasons are those of the first plugin that refuses; NodeResourcesFit gives one for each resource.
        """
        if self.problem is not None:
            return (self.problem,)
        return self._static.refusals(info) or self._refusals_by_use(info) or self._later_refusals(info)

    def fits(self, info: NodeInfo) -> bool:
        """Return whether the node can take a pod. This is faster than `refusals`."""
        if not has_resources(info, self._shape) or self._static.refusals(info):
            return False
        return self.is_independent or self._fits_among_others(info)

    def refuses_for_good(self, info: NodeInfo) -> bool:
        """Return whether the node refuses a pod, and still does so after other pods have been placed.

        Only PodTopologySpread and InterPodAffinity may allow a pod later. This is faster than `refusals`.
        """
        if self.problem is not None or not has_resources(info, self._shape) or self._static.refusals(info):
            return True
        if self._ports and not _has_free_ports(info, self._ports):
            return True
        return self._volumes is not None and bool(self._volumes.refusals(info))

    def room(self, info: NodeInfo, at_most: int) -> int:
        """Return how many pods of the shape fit on the node one after another, if nothing else changes.

        The number is found by division if the shape has no constraint that depends on its own pods, and otherwise one
        pod at a time.
        """
        room = room_by_resources(info, self._shape, at_most)
        if room <= 0 or self._static.refusals(info):
            return 0
        if not (self.is_independent or self._fits_among_others(info)):
            return 0
        if not self._hinders_itself:
            return room
        placed = 0
        while placed < room and self.fits(info):
            self._snapshot.try_pods(self._shape, info, 1)
            placed += 1
        self._snapshot.try_pods(self._shape, info, -placed)
        return placed

    @property
    def is_independent(self) -> bool:
        """Whether pods of this shape influence each other by requests alone.

        That is so if they have no ports, affinity, spread or volumes, and no pod in the snapshot has a term against
        them.
        """
        return self._is_plain and not self._others.has_opponents

    @property
    def label_keys(self) -> frozenset[str] | None:
        """The labels by which nodes that the constraints on labels and taints allow may differ to pods of the shape.

        None if the name of a node counts, too. Pods with further anti-affinity terms may add labels.
        """
        volumes = self._volumes.label_keys if self._volumes else frozenset[str]()
        if self._static.reads_names or volumes is None:
            return None
        spread = self._spread.label_keys if self._spread else ()
        return self._others.label_keys.union(spread, volumes)

    @property
    def spread_minima(self) -> tuple[int, ...] | None:
        """The smallest count of all domains, for each spread constraint of the shape; None if it has affinity terms.

        While pods are only added, a pod that PodTopologySpread or another pod's anti-affinity keeps from a node stays
        refused until one of these counts changes. Affinity terms differ: an added pod may satisfy them.
        """
        if self._shape.scheduling.affinity:
            return None
        return self._spread.minima if self._spread else ()

    @property
    def host_minima(self) -> tuple[int, ...]:
        """The smallest count of all hosts, for each spread constraint over hosts; see `admits`."""
        return self._spread.host_minima if self._spread else ()

    def shared_domains(self, info: NodeInfo) -> SharedDomains:
        """Return the domains of the node, but for its host, that the spread constraints of the shape count."""
        return self._spread.shared_domains(info) if self._spread else ()

    def admits(self, domains: SharedDomains) -> bool:
        """Return whether spread constraints allow another pod in these domains; otherwise all their nodes refuse it.

        While pods are only added, a node that refuses a pod although they do stays so until one of `host_minima`
        changes, except if the shape has affinity terms.
        """
        return self._spread is None or self._spread.admits(domains)

    @property
    def is_spread(self) -> bool:
        """Whether the pods that are placed keep the spread constraints of the shape, whatever order they came in."""
        return self._spread is None or self._spread.is_kept

    def first_fit(self, nodes: Iterable[NodeInfo]) -> NodeInfo | None:
        """Return the first node that can take a pod."""
        return next(filter(self.fits, nodes), None)

    def _refusals_by_use(self, info: NodeInfo) -> tuple[Refusal, ...]:
        if self._ports and not _has_free_ports(info, self._ports):
            return _PORT_REFUSALS
        return () if has_resources(info, self._shape) else resource_refusals(info, self._shape)

    def _fits_among_others(self, info: NodeInfo) -> bool:
        if self.problem is not None or (self._ports and not _has_free_ports(info, self._ports)):
            return False
        if self._volumes is not None and self._volumes.refusals(info):
            return False
        return (self._spread is None or self._spread.fits(info)) and not self._others.refusals(info)

    def _later_refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        found = self._volumes.refusals(info) if self._volumes else ()
        if not found and self._spread:
            found = self._spread.refusals(info)
        return found or self._others.refusals(info)

    def _first_problem(self) -> Refusal | None:
        if self._static.names is not None and not self._static.names:
            return CONFLICT
        if self._volumes is not None and self._volumes.problem is not None:
            return self._volumes.problem
        return _DEVICES if self._shape.scheduling.resource_claims else None


def _has_free_ports(info: NodeInfo, ports: tuple[HostPort, ...]) -> bool:
    """Return whether all ports are free. A port of all addresses conflicts with the same port of any address."""
    return not any(_is_port_taken(info, port) for port in ports)


def _is_port_taken(info: NodeInfo, port: HostPort) -> bool:
    addresses = info.ports.get((port.protocol, port.port))
    if not addresses:
        return False
    return port.address == _ALL_ADDRESSES or _ALL_ADDRESSES in addresses or port.address in addresses
