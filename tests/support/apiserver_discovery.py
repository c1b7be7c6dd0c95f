"""The discovery documents of the stand-in for kube-apiserver, in both forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.apiserver_store import Json, RefusedError

if TYPE_CHECKING:
    from tests.support.fake_apiserver import FakeApiServer


def _groups(fake: FakeApiServer) -> dict[str, list[str]]:
    """Return the versions of each group except the core group, preferred ones first."""
    groups: dict[str, list[str]] = {}
    for resource in fake.resources:
        versions = groups.setdefault(resource.group, [])
        if resource.version not in versions:
            versions.append(resource.version)
    groups.pop("")
    return groups


def aggregated(fake: FakeApiServer, *, core: bool) -> Json:
    groups = {"": ["v1"]} if core else _groups(fake)
    items = [
        {
            "metadata": {"name": group} if group else {"creationTimestamp": None},
            "versions": [_aggregated_version(fake, group, version) for version in versions],
        }
        for group, versions in groups.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_version(fake: FakeApiServer, group: str, version: str) -> Json:
    if group in fake.stale:
        return {"version": version, "freshness": "Stale"}
    resources = [
        {
            "resource": resource.plural,
            "responseKind": {"group": "", "version": "", "kind": resource.kind},
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "singularResource": resource.singular,
            "verbs": ["get", "list", "watch"],
            "subresources": [{"subresource": "status", "verbs": ["get"]}],
        }
        for resource in fake.resources
        if (resource.group, resource.version) == (group, version)
    ]
    return {"version": version, "freshness": "Current", "resources": resources}


def legacy_root(fake: FakeApiServer, *, core: bool) -> Json:
    if core:
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    groups = [
        {
            "name": group,
            "versions": [{"groupVersion": f"{group}/{version}", "version": version} for version in versions],
            "preferredVersion": {"groupVersion": f"{group}/{versions[0]}", "version": versions[0]},
        }
        for group, versions in _groups(fake).items()
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def legacy_version(fake: FakeApiServer, group: str, version: str) -> Json:
    listed = [
        {
            "name": name,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": ["get", "list", "watch"],
        }
        for resource in fake.resources
        if (resource.group, resource.version) == (group, version)
        for name in (resource.plural, f"{resource.plural}/status")
    ]
    if not listed:
        raise RefusedError(404, "NotFound", "the server could not find the requested resource")
    return {"kind": "APIResourceList", "groupVersion": f"{group}/{version}".strip("/"), "resources": listed}
