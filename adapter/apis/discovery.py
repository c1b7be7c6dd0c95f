"""Discovery documents: what there is to ask for.

They are made from the catalogue in memory, once for each catalogue, and never wait for anything: kube-apiserver takes
an API whose discovery is slow or missing out of service, and with it the deletion of namespaces in the whole cluster.

The aggregated form (`apidiscovery.k8s.io/v2`) names the groups and versions and leaves the metrics out. It is what
kube-apiserver fetches each minute and hands to every client; the HPA needs no more of it, and thousands of metrics
would make every client's discovery larger. The whole list stays at `/apis/GROUP/VERSION`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from adapter.apis.http import Response
from adapter.apis.routing import CUSTOM, EXTERNAL, VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.readings.catalogue import Catalogue

_json = msgspec.json.encode

_AGGREGATED_VERSIONS = ("v2", "v2beta1")
"""Of `apidiscovery.k8s.io`; the older one is asked for by API servers before 1.30."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    catalogue: Catalogue
    lists: Mapping[tuple[str, str], bytes]


class ResourceLists:
    """`APIResourceList` documents, made anew when the catalogue is another one."""

    def __init__(self) -> None:
        self._prepared: _Prepared | None = None

    def get(self, catalogue: Catalogue, group: str, version: str) -> bytes:
        """Return the document of one group and version."""
        prepared = self._prepared
        if prepared is None or prepared.catalogue is not catalogue:
            prepared = self._prepared = _Prepared(catalogue, _resource_lists(catalogue))
        return prepared.lists[group, version]


def api_group(group: str) -> bytes:
    """Return the `APIGroup` document: the group's versions, the preferred one first."""
    return _json({"kind": "APIGroup", "apiVersion": "v1", **_group(group)})


def api_group_list() -> bytes:
    """Return the `APIGroupList` document."""
    return _json({"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in VERSIONS]})


def groups_response(accept: str, if_none_match: str) -> Response:
    """Return `/apis` in the form that the `Accept` header prefers, 304 where the client already has it."""
    version = _aggregated_version(accept)
    if version is None:
        return Response(200, api_group_list(), headers=(("Vary", "Accept"),))
    body = _aggregated(version)
    etag = f'"{hashlib.sha256(body).hexdigest()[:32].upper()}"'
    headers = (("ETag", etag), ("Vary", "Accept"), ("Cache-Control", "public"))
    content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    if etag in (tag.strip().removeprefix("W/") for tag in if_none_match.split(",")):
        return Response(304, b"", content_type, headers)
    return Response(200, body, content_type, headers)


def _resource_lists(catalogue: Catalogue) -> Mapping[tuple[str, str], bytes]:
    custom = b",".join(
        _entry(metric.qualified, "MetricValueList", namespaced=metric.namespaced) for metric in catalogue.custom
    )
    external = b",".join(
        _entry(metric.name, "ExternalMetricValueList", namespaced=True) for metric in catalogue.external
    )
    entries = {CUSTOM: custom, EXTERNAL: external}
    return {
        (group, version): _resource_list(group, version, entries[group])
        for group, versions in VERSIONS.items()
        for version in versions
    }


def _resource_list(group: str, version: str, entries: bytes) -> bytes:
    head = f'{{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"{group}/{version}","resources":['
    return b"%b%b]}" % (head.encode(), entries)


def _entry(name: str, kind: str, *, namespaced: bool) -> bytes:
    """Return one resource; `get` is its only verb: others would make namespace controller and quota act on it."""
    return b'{"name":%b,"singularName":"","namespaced":%b,"kind":"%b","verbs":["get"]}' % (
        _json(name),
        _json(namespaced),
        kind.encode(),
    )


def _group(group: str) -> dict[str, object]:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in VERSIONS[group]]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _aggregated_version(accept: str) -> str | None:
    for item in accept.split(","):
        media_type, *parameters = (part.strip() for part in item.split(";"))
        given = dict(parameter.partition("=")[::2] for parameter in parameters)
        if given.get("g") == "apidiscovery.k8s.io" and given.get("as") == "APIGroupDiscoveryList":
            if media_type == "application/json" and given.get("v") in _AGGREGATED_VERSIONS:
                return given["v"]
        elif media_type in {"application/json", "*/*", "application/*"}:
            return None
    return None


def _aggregated(version: str) -> bytes:
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [{"version": served, "resources": [], "freshness": "Current"} for served in versions],
        }
        for group, versions in VERSIONS.items()
    ]
    kind = {"kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{version}"}
    return _json({**kind, "metadata": {}, "items": items})
