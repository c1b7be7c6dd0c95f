"""Which rights node groups and their sizes need beside those to see nodes, pods and workloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recommender.cluster_size.future.buffers import GROUP as BUFFERS
from recommender.cluster_size.node_groups.kinds import CLUSTER_API_GROUP, SCALABLE_RESOURCES, STATUS_CONFIG_MAP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.cluster_size.model.settings import BufferSettings, ClusterApiGroups, ClusterSizeSettings

INFRASTRUCTURE_GROUP: Final = "infrastructure.cluster.x-k8s.io"
_WATCH: Final = ("list", "watch")
_GET: Final = ("get",)
_KEEP: Final = ("get", "update")
_CREATE: Final = ("create",)


@dataclass(frozen=True, slots=True, order=True)
class SizeRight:
    """A right, as one rule of a Role or ClusterRole grants it."""

    namespace: str
    """Empty: in the whole cluster."""
    api_group: str
    resource: str
    """The plural name; `*` for all of the group."""
    subresource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Empty: all objects of the resource."""


def rights_of(settings: ClusterSizeSettings, *, scales: bool, writes_buffer: bool) -> tuple[SizeRight, ...]:
    """Return the rights for the sources of groups, and for the outputs `scale` and `capacityBuffer`, sorted.

    Infrastructure templates are kinds of their own in each installation, hence all of their API group are read.
    """
    found: list[SizeRight] = []
    stated = settings.node_groups.cluster_api
    if stated is not None:
        found.extend(_of_reading(stated))
        if scales:
            found.extend(_of_scaling(stated))
    if writes_buffer and settings.buffer is not None:
        found.extend(_of_buffer(settings.buffer))
    return tuple(sorted(found))


def _of_reading(stated: ClusterApiGroups) -> Iterator[SizeRight]:
    for resource in (*SCALABLE_RESOURCES.values(), "machines", "clusters"):
        yield SizeRight(stated.namespace, CLUSTER_API_GROUP, resource, "", _WATCH)
    yield SizeRight(stated.namespace, INFRASTRUCTURE_GROUP, "*", "", _WATCH)
    # One name restricts a list whose field selector names the same object.
    status = STATUS_CONFIG_MAP
    yield SizeRight(status.namespace, status.group, status.resource, "", _WATCH, (status.name,))


def _of_scaling(stated: ClusterApiGroups) -> Iterator[SizeRight]:
    for resource in SCALABLE_RESOURCES.values():
        yield SizeRight(stated.namespace, CLUSTER_API_GROUP, resource, "", _GET)
        yield SizeRight(stated.namespace, CLUSTER_API_GROUP, resource, "scale", _KEEP)
    yield SizeRight(stated.namespace, CLUSTER_API_GROUP, "clusters", "", _GET)
    yield SizeRight(stated.namespace, "", "events", "", _CREATE)
    if stated.mark_machines:
        yield SizeRight(stated.namespace, CLUSTER_API_GROUP, "machines", "", _KEEP)


def _of_buffer(stated: BufferSettings) -> Iterator[SizeRight]:
    yield SizeRight(stated.namespace, BUFFERS, "capacitybuffers", "", (*_WATCH, *_KEEP), (stated.name,))
    yield SizeRight(stated.namespace, "", "podtemplates", "", _WATCH)
    yield SizeRight(stated.namespace, "", "events", "", _CREATE)
