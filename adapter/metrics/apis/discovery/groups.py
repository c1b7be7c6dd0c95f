"""Groups and versions of the APIs; the metrics themselves are in `lists`.

The aggregated form (`apidiscovery.k8s.io/v2`) names the groups and versions without the metrics. kube-apiserver fetches
it every minute and passes it on to every client; the HPA needs no more of it, and thousands of metrics would make every
client's discovery larger. The complete list is at `/apis/GROUP/VERSION`.

Nothing here depends on series or rules, so all of it is made once and never waits: if discovery of an API is slow or
missing, kube-apiserver marks the API unavailable, and no namespace in the cluster can be deleted. Therefore
metrics.k8s.io is served even if resource rules are removed or refused, since an APIService may still point here.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapter.foundation.web.http import JSON, Response, json_line
from adapter.foundation.web.negotiation import AGGREGATED_VERSIONS, aggregated_version
from adapter.foundation.web.tagged import entity, unless_current
from adapter.metrics.apis.routing import RESOURCE, VERSIONS

_VARY = ("Vary", "Accept")


def groups_response(accept: str, if_none_match: str) -> Response:
    """Return `/apis` in the form that the `Accept` header prefers, or 304 if the client already has it."""
    version = aggregated_version(accept)
    if version is None:
        return Response(200, API_GROUP_LIST, headers=(_VARY,))
    return unless_current(_AGGREGATED[version], if_none_match)


def _group(group: str) -> dict[str, object]:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in VERSIONS[group]]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _aggregated_discovery(version: str) -> Response:
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [
                {"version": served, "resources": _aggregated_resources(group), "freshness": "Current"}
                for served in VERSIONS[group]
            ],
        }
        for group in VERSIONS
    ]
    kind = {"kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{version}"}
    body = json_line({**kind, "metadata": {}, "items": items})
    content_type = f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    return entity(body, content_type, (_VARY,), cache_control="public")


def _aggregated_resources(group: str) -> list[dict[str, object]]:
    """Return the resources in aggregated discovery: no metrics, since there may be thousands of them."""
    version = VERSIONS[RESOURCE][0]
    return [
        {
            "resource": plural,
            "responseKind": {"group": RESOURCE, "version": version, "kind": kind},
            "scope": "Namespaced" if namespaced else "Cluster",
            "singularResource": _SINGULAR,
            "verbs": _VERBS,
        }
        for plural, namespaced, kind in (_USAGE if group == RESOURCE else ())
    ]


def _usage_list() -> bytes:
    resources = [
        {"name": plural, "singularName": _SINGULAR, "namespaced": namespaced, "kind": kind, "verbs": _VERBS}
        for plural, namespaced, kind in _USAGE
    ]
    head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{RESOURCE}/{VERSIONS[RESOURCE][0]}"}
    return json_line({**head, "resources": resources})


_VERBS = ("get", "list")
_USAGE = (("nodes", False, "NodeMetrics"), ("pods", True, "PodMetrics"))
"""The plural of each kind, whether it is namespaced, and the kind."""
_SINGULAR = ""
"""Singular name as in metrics-server: kubectl then derives `podmetrics` from the kind, and `pod` still means a Pod."""
USAGE_RESOURCES = _usage_list()
"""The `APIResourceList` of metrics.k8s.io: pods and nodes, which can be listed."""
API_GROUPS: Mapping[str, bytes] = {
    group: json_line({"kind": "APIGroup", "apiVersion": "v1", **_group(group)}) for group in VERSIONS
}
"""The `APIGroup` document of each group: its versions, the preferred one first."""
API_GROUP_LIST = json_line({"kind": "APIGroupList", "apiVersion": "v1", "groups": list(map(_group, VERSIONS))})
_AGGREGATED: Mapping[str, Response] = {version: _aggregated_discovery(version) for version in AGGREGATED_VERSIONS}
