"""`doctor --remove`: removes the APIServices of a release that no longer exists or never started.

An APIService without a server behind it blocks the deletion of every namespace in the cluster. Since it belongs to no
namespace itself, it survives `kubectl delete namespace`. Only APIServices that a release of the chart created are
removed, and only while no server answers for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapter.commands.doctor.autoscalers import ready_pods_behind
from adapter.foundation.reports.lines import Line, error, ok
from adapter.foundation.sources.kubernetes.errors import ConflictError, ForbiddenError, KubernetesError, NotFoundError
from adapter.metrics.identity.certificates.apiservices import PATH, read_apiservice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.objects.names import ObjectName
    from adapter.foundation.sources.kubernetes.writing import ObjectClient

_CHART: Final = "helm.sh/chart"
_OURS: Final = "tidewatch-"


def remove_if_left_behind(client: ObjectClient, name: str) -> tuple[Line]:
    """Remove an APIService if a release of the chart has left it behind; return a line about what was done, and why."""
    line = f"apiservice/{name}"
    right = f"get and delete on the apiservice {name}, and list on endpointslices of its namespace"
    try:
        document = client.get(f"{PATH}/{name}").document
        kept = _why_kept(client, document)
        if kept:
            return (ok(line, f"kept: {kept}"),)
        metadata = document["metadata"]
        client.delete(
            f"{PATH}/{name}",
            uid=str(metadata.get("uid", "")),
            resource_version=str(metadata.get("resourceVersion", "")),
        )
    except NotFoundError:
        return (ok(line, "it does not exist"),)
    except ConflictError:
        return (error(line, "not removed: it was changed meanwhile", "run this again"),)
    except KubernetesError as e:
        return (_failure_line(line, e, right),)
    service = read_apiservice(document).service
    return (ok(line, f"removed: no pod is ready behind the service {service}"),)


def _failure_line(line: str, failure: KubernetesError, right: str) -> Line:
    """Return the line about a request that failed."""
    if isinstance(failure, ForbiddenError):
        return error(line, f"not removed: {failure}", f"grant {right}, or run this as a user who has it")
    fix = "run this again once kube-apiserver answers: it removes what is still there"
    return error(line, f"it may still be there: {failure}", fix)


def _why_kept(client: ObjectClient, document: Mapping[str, Any]) -> str:
    """Return the reason to keep an APIService; empty if it is to be removed. Raises KubernetesError."""
    labels = (document.get("metadata") or {}).get("labels") or {}
    service = read_apiservice(document).service
    if service is None:
        return "kube-apiserver itself serves it"
    if not str(labels.get(_CHART, "")).startswith(_OURS):
        return f"it does not belong to a release of this chart (no label {_CHART}={_OURS}…)"
    if ready := len(_ready_behind(client, service)):
        return f"{ready} {'pod is' if ready == 1 else 'pods are'} ready behind the service {service}"
    return ""


def _ready_behind(client: ObjectClient, service: ObjectName) -> set[str]:
    """Return the ready pods behind a Service; none if it or its namespace does not exist."""
    try:
        client.get(f"/api/v1/namespaces/{service.namespace}/services/{service.name}")
    except NotFoundError:
        return set()
    return ready_pods_behind(client, service)
