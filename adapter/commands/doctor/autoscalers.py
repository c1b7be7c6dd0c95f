"""`doctor` checks which HPAs lack a value that the adapter serves, and whether it survives the loss of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapter.commands.program import PROGRAM
from adapter.foundation.options.cluster_checks import unread
from adapter.foundation.reports.counts import first_names
from adapter.foundation.reports.lines import Line, error, ok, warning
from adapter.foundation.sources.kubernetes.errors import KubernetesError, trim_message

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.objects.names import ObjectName
    from adapter.foundation.sources.kubernetes.writing import ObjectClient

HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
CUSTOM_SOURCES = {"Pods": "pods", "Object": "object"}
"""Types of metrics that come from custom.metrics.k8s.io, and the key of each in a spec.

The reason of the condition ScalingActive names the type: `FailedGetPodsMetric`.
"""
EXTERNAL_SOURCES = {"External": "external"}
"""Types of metrics that come from external.metrics.k8s.io."""
RESOURCE_SOURCES = {"Resource": "resource", "ContainerResource": "containerResource"}
"""Types of metrics that come from metrics.k8s.io."""
MOST_HPAS = 5
"""Limit on the HPAs that get a line of their own."""


def served_sources(*, external: bool, resources: bool) -> dict[str, str]:
    """Return the types of metrics that come from custom.metrics.k8s.io and from the other APIs that are served."""
    return CUSTOM_SOURCES | (EXTERNAL_SOURCES if external else {}) | (RESOURCE_SOURCES if resources else {})


def look_at_hpas(client: ObjectClient, sources: Mapping[str, str]) -> tuple[Line, ...]:
    """List the HPAs of all namespaces, and judge their conditions.

    `sources` has the types of metrics that the adapter serves, and the key of each in a spec.
    """
    try:
        found = list(_list_objects(client, HPAS, {"limit": "500"}))
    except KubernetesError as e:
        return (unread("hpas", e, "list on horizontalpodautoscalers.autoscaling"),)
    return tuple(judge_hpas(found, sources))


def judge_hpas(hpas: Sequence[Mapping[str, Any]], sources: Mapping[str, str]) -> Iterator[Line]:
    """Yield a line for each HPA that lacks a value, up to `MOST_HPAS`, and a line about all HPAs.

    `sources` has the types of metrics that the adapter serves, and the key of each in a spec.
    """
    failing = [(hpa, problem) for hpa in hpas if (problem := _problem(hpa, sources))]
    for hpa, problem in failing[:MOST_HPAS]:
        metadata = hpa.get("metadata") or {}
        namespace, name = metadata.get("namespace"), metadata.get("name")
        yield warning(f"hpa/{namespace}/{name}", problem, _fix_of(problem, namespace))
    if failing:
        rest = len(failing) - MOST_HPAS
        more = f", {rest} of them not shown" if rest > 0 else ""
        yield warning(
            "hpas", f"{len(failing)} of {len(hpas)} HPAs lack a metric{more}", "follow the fix of each of them"
        )
    else:
        kinds = ["custom", *(kind.lower() for kind in ("External", "Resource") if kind in sources)]
        shown = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
        yield ok("hpas", f"none of {len(hpas)} HPAs lacks a {shown} metric")


def _fix_of(problem: str, namespace: str | None) -> str:
    """Return what to do about a problem; a utilization also needs requests, which no metrics API states."""
    if "missing request for" in problem:
        return "set the request that the message names, or a target of type AverageValue"
    return f"run `{PROGRAM} explain METRIC --namespace {namespace}` with the metric that the message names"


def _problem(hpa: Mapping[str, Any], sources: Mapping[str, str]) -> str:
    """Return what an HPA lacks; empty if it lacks nothing that the adapter may serve."""
    conditions = (hpa.get("status") or {}).get("conditions") or ()
    reasons = {f"FailedGet{kind}Metric" for kind in sources}
    for one in conditions:
        if one.get("type") == "ScalingActive" and one.get("status") == "False" and one.get("reason") in reasons:
            cause = trim_message(f"{one.get('reason')}: {one.get('message', '')}")
            return f"it does not scale: {cause}"
    # The condition names the first metric that failed, and none while another one asks for no less than there is.
    lacking = trim_message(first_names(_unused_metrics(hpa, sources), most=3))
    return f"it could not use {lacking} in its last sync, and does not scale down without it" if lacking else ""


def _unused_metrics(hpa: Mapping[str, Any], sources: Mapping[str, str]) -> Iterator[str]:
    """Yield the metrics that the last sync could not use: their entry in the status is empty."""
    metrics = (hpa.get("spec") or {}).get("metrics") or ()
    found = (hpa.get("status") or {}).get("currentMetrics") or ()
    if len(metrics) != len(found):
        return
    for metric, current in zip(metrics, found, strict=True):
        kind = metric.get("type")
        if kind in sources and not current.get("type"):
            source = metric.get(sources[kind]) or {}
            # Of CPU and memory, the name is that of the resource.
            name = (source.get("metric") or source).get("name")
            yield f"{kind} metric {name}"


def look_at_replicas(client: ObjectClient, service: ObjectName) -> tuple[Line]:
    """List the endpoints of the adapter's Service, and judge how many are ready."""
    try:
        ready = ready_pods_behind(client, service)
    except KubernetesError as e:
        return (unread("replicas", e, f"list on endpointslices.discovery.k8s.io in {service.namespace}"),)
    return (judge_replicas(service, ready),)


def ready_pods_behind(client: ObjectClient, service: ObjectName) -> set[str]:
    """Return the ready pods behind a Service; an endpoint without conditions counts as ready.

    A pod of a Service with two address families has an endpoint for each, and counts once. An endpoint that names no
    pod is known by its address. Raises KubernetesError.
    """
    path = f"/apis/discovery.k8s.io/v1/namespaces/{service.namespace}/endpointslices"
    slices = _list_objects(client, path, {"labelSelector": f"kubernetes.io/service-name={service.name}"})
    return {
        str((endpoint.get("targetRef") or {}).get("name") or address)
        for one in slices
        for endpoint in one.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
        for address in endpoint.get("addresses") or ()
    }


def judge_replicas(service: ObjectName, ready: Collection[str]) -> Line:
    """Return the line about the pods behind the Service."""
    if not ready:
        fix = f"look at the adapter's pods in {service.namespace}, and at /readyz?verbose of each"
        return error("replicas", f"no pod behind the service {service} is ready", fix)
    if len(ready) == 1:
        fix = "run two or more replicas: if the last one ends, the API is unavailable and no namespace can be deleted"
        return warning("replicas", f"only one pod is ready behind the service {service}", fix)
    return ok("replicas", f"{len(ready)} pods are ready behind the service {service}")


def _list_objects(client: ObjectClient, path: str, query: Mapping[str, str]) -> Iterable[Mapping[str, Any]]:
    """Yield the objects from all pages of a list."""
    following = ""
    while True:
        document = client.get(path, {**query, **({"continue": following} if following else {})}).document
        yield from document.get("items") or ()
        following = str((document.get("metadata") or {}).get("continue") or "")
        if not following:
            return
