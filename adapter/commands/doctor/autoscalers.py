"""`doctor` checks which HPAs cannot use a metric of the adapter, and whether it survives the loss of a pod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

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
_FIXES_OF_TARGETS: Final = {
    ("AbleToScale", "FailedGetScale"): "correct its scaleTargetRef, or create the target that the message names",
    ("AbleToScale", "FailedUpdateScale"): "let the HPA controller write the size: the message says what refused it",
    ("ScalingActive", "InvalidSelector"): (
        "give the target's scale subresource a selector (labelSelectorPath in a CustomResourceDefinition)"
    ),
    ("ScalingActive", "AmbiguousSelector"): "give each HPA a target whose pods no other HPA's target selects",
}
"""What to do about an HPA that cannot scale its target, whatever its metrics, by the type and reason of a condition."""
_CONFLICT: Final = "the object has been modified"
"""Part of the message of a write that another one preceded; the HPA's next sync writes again."""


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why an HPA does not follow its metrics."""

    message: str
    fix: str
    harm: str = "lack a metric"
    """The problem in the line about all HPAs."""


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
    """Yield a line for each HPA that does not follow its metrics, up to `MOST_HPAS`, and a line about all HPAs.

    `sources` has the types of metrics that the adapter serves, and the key of each in a spec.
    """
    failing = [(hpa, problem) for hpa in hpas if (problem := _problem(hpa, sources))]
    for hpa, problem in failing[:MOST_HPAS]:
        name = f"hpa/{_in_metadata(hpa, 'namespace')}/{_in_metadata(hpa, 'name')}"
        yield warning(name, problem.message, problem.fix)
    if failing:
        rest = len(failing) - MOST_HPAS
        more = f", {rest} of them not shown" if rest > 0 else ""
        harms = " or ".join(sorted({problem.harm for _, problem in failing}, reverse=True))
        yield warning(
            "hpas", f"HPAs that {harms}: {len(failing)} of {len(hpas)}{more}", "follow the fix of each of them"
        )
    else:
        kinds = ["custom", *(kind.lower() for kind in ("External", "Resource") if kind in sources)]
        shown = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
        targets = "none that uses one fails to scale its target"
        yield ok("hpas", f"no HPA lacks a {shown} metric, and {targets}; HPAs: {len(hpas)}")


def _fix_of(problem: str, namespace: str) -> str:
    """Return what to do about a lacking metric; a utilization also needs requests, which no metrics API states."""
    if "missing request for" in problem:
        return "set the request that the message names, or a target of type AverageValue"
    return (
        f"run `{PROGRAM} explain METRIC --namespace {namespace}` with the metric that the message names, and "
        "with --server, or with the --config and the --prometheus flags of `serve`"
    )


def _problem(hpa: Mapping[str, Any], sources: Mapping[str, str]) -> _Problem | None:
    """Return why an HPA does not follow a metric that the adapter may serve; None if it does."""
    conditions = (hpa.get("status") or {}).get("conditions") or ()
    metrics = (hpa.get("spec") or {}).get("metrics") or ()
    is_ours = any(metric.get("type") in sources for metric in metrics)
    reasons = {f"FailedGet{kind}Metric" for kind in sources}
    for one in conditions:
        if one.get("status") != "False" or _CONFLICT in str(one.get("message")):
            continue
        kind, reason = one.get("type"), one.get("reason")
        cause = trim_message(f"{reason}: {one.get('message', '')}")
        message = f"it does not scale: {cause}"
        if is_ours and (fix := _FIXES_OF_TARGETS.get((kind, reason))):
            return _Problem(message, fix, harm="do not scale their targets")
        if kind == "ScalingActive" and reason in reasons:
            return _Problem(message, _fix_of(message, _in_metadata(hpa, "namespace")))
    # The condition names the first metric that failed, and none while another one asks for no less than there is.
    lacking = trim_message(first_names(_unused_metrics(hpa, sources), most=3))
    if not lacking:
        return None
    message = f"it could not use {lacking} in its last sync, and does not scale down without it"
    return _Problem(message, _fix_of(message, _in_metadata(hpa, "namespace")))


def _in_metadata(hpa: Mapping[str, Any], key: str) -> str:
    return str((hpa.get("metadata") or {}).get(key) or "unknown")


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
        # A quota or an admission policy refuses pods before they exist, and only events tell.
        fix = (
            f"look at the adapter's pods in {service.namespace}, and at /readyz?verbose of each; if there are none, "
            f"`kubectl -n {service.namespace} get events --field-selector reason=FailedCreate` says what refuses them"
        )
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
