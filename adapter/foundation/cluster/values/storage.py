"""The facts of storage that restrict where pods may run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.constraints import NodeSelectorTerm
    from adapter.foundation.cluster.values.observed import Observed, Unknown


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """The part of a PersistentVolumeClaim on which placement depends."""

    namespace: str
    name: str
    volume: str
    """`spec.volumeName`; empty while the claim is not bound."""
    storage_class: str | None
    """Name of the StorageClass; None if the claim states none and no default applies, empty for a volume without
    class."""
    is_bound: bool
    """Whether the phase is Bound, or the volume controller's annotation says that it is bound."""
    is_lost: bool = False
    is_terminating: bool = False
    request_bytes: int = 0
    access_modes: tuple[str, ...] = ()
    selected_node: str = ""
    """The annotation `volume.kubernetes.io/selected-node`."""


@dataclass(frozen=True, slots=True)
class Volume:
    """The part of a PersistentVolume on which placement depends."""

    name: str
    labels: Mapping[str, str]
    node_terms: tuple[NodeSelectorTerm, ...] | None
    """`spec.nodeAffinity.required`; None if it may be used from every node."""
    storage_class: str
    capacity_bytes: int
    access_modes: tuple[str, ...] = ()
    driver: str = ""
    """CSI driver; empty for other kinds."""
    handle: str = ""
    """CSI volume handle, by which two claims to one disk are counted once."""
    claim: tuple[str, str] | None = None
    """Namespace and name of `spec.claimRef`."""
    phase: str = ""


@dataclass(frozen=True, slots=True)
class StorageClassFacts:
    """The part of a StorageClass on which placement depends."""

    name: str
    provisioner: str
    binds_at_first_consumer: bool
    """`volumeBindingMode: WaitForFirstConsumer`."""
    allowed_topologies: tuple[NodeSelectorTerm, ...] | None = None


@dataclass(frozen=True, slots=True)
class CsiNodeFacts:
    """How many volumes of each driver a node can attach."""

    name: str
    limits: Mapping[str, int]
    """The limit of each driver; a driver without a limit is absent."""


@dataclass(frozen=True, slots=True)
class Storage:
    """All known facts of storage. Each part may be unknown by itself."""

    claims: Observed[Mapping[tuple[str, str], VolumeClaim]] | Unknown
    """The claims, by namespace and name."""
    volumes: Observed[Mapping[str, Volume]] | Unknown
    classes: Observed[Mapping[str, StorageClassFacts]] | Unknown
    csi_nodes: Observed[Mapping[str, CsiNodeFacts]] | Unknown
    """The limits of each node, by the node's name."""
