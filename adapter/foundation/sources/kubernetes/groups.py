"""API discovery of kube-apiserver: plural and singular names, kind, group, version and scope of each kind.

Since Kubernetes 1.26, two documents contain all of this (aggregated discovery, KEP-3352); before, there was one
document for each group version. Both forms are supported. A group whose server is unavailable (503, or marked stale)
never affects the others.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from adapter.foundation.objects.resources import Resource
from adapter.foundation.sources.kubernetes.client import JSON, KubernetesClient
from adapter.foundation.sources.kubernetes.errors import KubernetesError, UnexpectedResponseError
from adapter.foundation.sources.kubernetes.lists.items import ItemsError, JsonList, decode_json
from adapter.foundation.time.pace import UNPACED, Pace

logger = logging.getLogger(__name__)

T = TypeVar("T")

_AGGREGATED = ",".join(
    [
        f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        f"{JSON};g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        JSON,
    ]
)
_METRIC_GROUPS = frozenset({"custom.metrics.k8s.io", "external.metrics.k8s.io", "metrics.k8s.io"})
"""Groups whose "resources" are metrics and cannot be watched; this program itself may be their server."""


@dataclass(frozen=True, slots=True)
class GroupVersion:
    """One API version of a group, and its resources."""

    group: str
    version: str
    resources: tuple[Resource, ...] | None
    """Resources of the version; None if the server of this group does not answer."""


class _Kind(msgspec.Struct):
    kind: str = ""


class _DiscoveredResource(msgspec.Struct, rename="camel"):
    resource: str
    scope: str
    singular_resource: str = ""
    response_kind: _Kind | None = None


class _DiscoveredVersion(msgspec.Struct):
    version: str
    freshness: str = ""
    resources: list[_DiscoveredResource] = []


class _Name(msgspec.Struct):
    name: str = ""


class _DiscoveredGroup(msgspec.Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)
    versions: list[_DiscoveredVersion] = []


class _Version(msgspec.Struct):
    version: str


class _LegacyGroup(msgspec.Struct, rename="camel"):
    name: str
    versions: list[_Version]
    preferred_version: _Version | None = None


class _LegacyRoot(msgspec.Struct):
    versions: list[str] = []
    """Versions of `/api`."""
    groups: list[_LegacyGroup] = []
    """Groups of `/apis`."""


class _LegacyResource(msgspec.Struct, rename="camel"):
    name: str
    namespaced: bool
    kind: str
    singular_name: str = ""


class _LegacyResources(msgspec.Struct):
    resources: list[_LegacyResource] | None = None


def discover(client: KubernetesClient, pace: Pace = UNPACED) -> list[GroupVersion]:
    """Return all group versions: core first, then in the server's order, preferred versions first.

    Raises KubernetesError if a document that lists groups cannot be read.
    """
    return [found for root in ("/api", "/apis") for found in _discover_root(client, root, pace)]


def _discover_root(client: KubernetesClient, root: str, pace: Pace) -> Iterator[GroupVersion]:
    body = client.get(root, accept=_AGGREGATED)
    with pace.slice():
        kind = _decode_document(body, _Kind, root).kind
    if kind != "APIGroupDiscoveryList":
        yield from _legacy(client, root, _decode_document(body, _LegacyRoot, root), pace)
        return
    try:
        for groups in JsonList(body, _DiscoveredGroup).batches(pace):
            for group in groups:
                yield from _group_versions(group)
    except ItemsError as error:
        raise UnexpectedResponseError(f"GET {root}: not a discovery document: {error}") from error


def _group_versions(group: _DiscoveredGroup) -> Iterator[GroupVersion]:
    name = group.metadata.name
    if name in _METRIC_GROUPS:
        return
    for version in group.versions:
        if version.freshness == "Stale":
            yield GroupVersion(name, version.version, None)
            continue
        resources = (_resource(name, version.version, found) for found in version.resources)
        yield GroupVersion(name, version.version, tuple(resource for resource in resources if resource is not None))


def _resource(group: str, version: str, found: _DiscoveredResource) -> Resource | None:
    if found.response_kind is None:
        # Only its subresources are served.
        return None
    kind = found.response_kind.kind
    return Resource(
        group=group,
        version=version,
        plural=found.resource,
        singular=found.singular_resource or kind.lower(),
        kind=kind,
        namespaced=found.scope == "Namespaced",
    )


def _legacy(client: KubernetesClient, root: str, index: _LegacyRoot, pace: Pace) -> Iterator[GroupVersion]:
    for version in index.versions:
        yield _legacy_version(client, "", version, f"{root}/{version}", pace)
    for group in index.groups:
        if group.name in _METRIC_GROUPS:
            continue
        preferred = group.preferred_version.version if group.preferred_version else ""
        versions = [version.version for version in group.versions]
        for version in sorted(versions, key=lambda name: name != preferred):
            yield _legacy_version(client, group.name, version, f"{root}/{group.name}/{version}", pace)


def _legacy_version(client: KubernetesClient, group: str, version: str, path: str, pace: Pace) -> GroupVersion:
    try:
        body = client.get(path)
        with pace.slice():
            listed = _decode_document(body, _LegacyResources, path).resources or []
    except KubernetesError as error:
        logger.debug("discovery of %s failed: %s", path, error)
        return GroupVersion(group, version, None)
    resources = (
        Resource(
            group=group,
            version=version,
            plural=found.name,
            singular=found.singular_name or found.kind.lower(),
            kind=found.kind,
            namespaced=found.namespaced,
        )
        for found in listed
        if "/" not in found.name
    )
    return GroupVersion(group, version, tuple(resources))


def _decode_document(body: bytes, form: type[T], path: str) -> T:
    try:
        return decode_json(body, form)
    except ItemsError as error:
        raise UnexpectedResponseError(f"GET {path}: not a discovery document: {error}") from error
