"""Pods that are interchangeable to the scheduler's filters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.values.constraints import NO_CONSTRAINTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.constraints import PodScheduling
    from adapter.foundation.cluster.values.state import ClusterPod
    from adapter.foundation.objects.pod_requests import PodResources

_OWN_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_PREFIXES: Final = ("hugepages-", "attachable-volumes-")


@dataclass(frozen=True, slots=True, eq=False)
class PodShape:
    """All fields of a pod that a filter reads.

    A snapshot has one object for each shape, so shapes are compared by identity.
    """

    namespace: str
    labels: Mapping[str, str]
    requests: Mapping[str, int]
    """CPU in millicores, memory and storage in bytes, others as counts. A request of 0 is absent."""
    scheduling: PodScheduling
    priority: int
    is_plain: bool = field(init=False)
    """Whether a pod takes nothing from its node but resources: no port of the host, no claim and no disk."""

    def __post_init__(self) -> None:
        """Compute once what is needed for every pod that is placed or moved."""
        asked = self.scheduling
        object.__setattr__(self, "is_plain", not (asked.host_ports or asked.claims or asked.inline_volumes))


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """Why a node cannot take a pod."""

    plugin: str
    """The scheduler's filter plugin, such as `NodeResourcesFit`."""
    reason: str
    """The scheduler's own words, such as `Insufficient cpu`, as `FailedScheduling` counts them."""
    detail: str = ""
    """The exact cause, such as the key of the taint; empty if the reason says it all."""

    def __str__(self) -> str:
        """Return the reason and its exact cause."""
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


_Identity: TypeAlias = tuple[str, int, int, int, int]
_Labels: TypeAlias = tuple[tuple[str, str], ...]
_Requests: TypeAlias = tuple[tuple[str, int], ...]
_Value: TypeAlias = tuple[str, _Labels, int, int, int]


class ShapeTable:
    """The shapes of a snapshot, one object for all pods that are alike.

    Pods of one controller share their labels, resources and constraints, so most look-ups are by identity.
    """

    def __init__(self) -> None:
        # The values themselves are kept, too: the identity of a deleted object may be reused for another.
        self._by_identity: dict[_Identity, tuple[PodShape, object, object, object]] = {}
        self._by_value: dict[_Value, PodShape] = {}
        self._requests: dict[_Requests, dict[str, int]] = {}
        """One mapping for all shapes with these requests: clusters have far more workloads than different requests."""
        self._schedulings: dict[PodScheduling, PodScheduling] = {}
        self._schedulings_by_identity: dict[int, tuple[PodScheduling, PodScheduling]] = {}
        """The given object, and the one that represents all equal ones."""

    def shape(self, pod: ClusterPod) -> PodShape:
        """Return the shape of a pod."""
        facts = pod.facts
        scheduling = NO_CONSTRAINTS if facts is None else facts.scheduling
        identity = (pod.namespace, id(pod.labels), id(pod.resources), id(scheduling), pod.priority)
        found = self._by_identity.get(identity)
        if found is None:
            shape = self._equal_shape(pod, scheduling)
            found = self._by_identity[identity] = (shape, pod.labels, pod.resources, scheduling)
        return found[0]

    def _equal_shape(self, pod: ClusterPod, scheduling: PodScheduling) -> PodShape:
        shared = self._shared_scheduling(scheduling)
        requests = _requests(pod.resources)
        requests = self._requests.setdefault(tuple(requests.items()), requests)
        value = (pod.namespace, tuple(sorted(pod.labels.items())), id(requests), id(shared), pod.priority)
        shape = self._by_value.get(value)
        if shape is None:
            shape = PodShape(pod.namespace, pod.labels, requests, shared, pod.priority)
            self._by_value[value] = shape
        return shape

    def _shared_scheduling(self, scheduling: PodScheduling) -> PodScheduling:
        # Hashing constraints takes long, and many controllers share one value.
        found = self._schedulings_by_identity.get(id(scheduling))
        if found is None:
            found = (scheduling, self._schedulings.setdefault(scheduling, scheduling))
            self._schedulings_by_identity[id(scheduling)] = found
        return found[1]


def _requests(resources: PodResources) -> dict[str, int]:
    """Return the requests that the scheduler counts in its order: its own resources, then others by name."""
    asked = resources.requests
    found = {name: asked[name] for name in _OWN_RESOURCES if asked.get(name, 0) > 0}
    others = asked.keys() - _OWN_RESOURCES
    if others:
        found |= {name: asked[name] for name in sorted(others) if asked[name] > 0 and _is_counted(name)}
    return found


def _is_counted(resource: str) -> bool:
    """Return whether the scheduler counts a resource besides its own: extended ones, huge pages and volumes."""
    if resource.startswith(_PREFIXES) or "kubernetes.io/" in resource:
        return True
    return "/" in resource and not resource.startswith("requests.")
