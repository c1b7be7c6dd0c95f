"""Groups and versions: what there is to ask for, but for the metrics themselves (those are in `lists`).

The aggregated form (`apidiscovery.k8s.io/v2`) names the groups and versions and leaves the metrics out. It is what
kube-apiserver fetches each minute and hands to every client; the HPA needs no more of it, and thousands of metrics
would make every client's discovery larger. The whole list stays at `/apis/GROUP/VERSION`.

Nothing here depends on rules or series, so all of it is made once and never waits for anything: kube-apiserver takes an
API whose discovery is slow or missing out of service, and with it the deletion of namespaces in the whole cluster.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from adapter.apis.http import JSON, Response, json_line
from adapter.apis.negotiation import AGGREGATED_VERSIONS, aggregated_version, is_current
from adapter.apis.routing import VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARY = ("Vary", "Accept")


def api_group(group: str) -> bytes:
    """Return the `APIGroup` document: the group's versions, the preferred one first."""
    return _API_GROUPS[group]


def api_group_list() -> bytes:
    """Return the `APIGroupList` document."""
    return _API_GROUP_LIST


def groups_response(accept: str, if_none_match: str) -> Response:
    """Return `/apis` in the form that the `Accept` header prefers, 304 where the client already has it."""
    version = aggregated_version(accept)
    if version is None:
        return Response(200, _API_GROUP_LIST, headers=(_VARY,))
    whole = _AGGREGATED[version]
    if if_none_match and is_current(dict(whole.headers)["ETag"], if_none_match):
        return Response(304, b"", whole.content_type, whole.headers, whole.cache_control)
    return whole


def _group(group: str) -> dict[str, object]:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in VERSIONS[group]]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _aggregated(version: str) -> Response:
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [{"version": served, "resources": [], "freshness": "Current"} for served in versions],
        }
        for group, versions in VERSIONS.items()
    ]
    kind = {"kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{version}"}
    body = json_line({**kind, "metadata": {}, "items": items})
    etag = f'"{hashlib.sha256(body).hexdigest()[:32].upper()}"'
    content_type = f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    return Response(200, body, content_type, (("ETag", etag), _VARY), cache_control="public")


_API_GROUPS: Mapping[str, bytes] = {
    group: json_line({"kind": "APIGroup", "apiVersion": "v1", **_group(group)}) for group in VERSIONS
}
_API_GROUP_LIST = json_line(
    {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in VERSIONS]}
)
_AGGREGATED: Mapping[str, Response] = {version: _aggregated(version) for version in AGGREGATED_VERSIONS}
