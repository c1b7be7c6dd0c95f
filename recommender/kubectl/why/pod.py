"""`why pod/NAME`: what a pending pod is waiting for, and which metrics a running one has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from adapter.foundation.reports.counts import agreeing, count_of
from adapter.foundation.sources.kubernetes.access_rights import AccessRight
from adapter.foundation.time.timestamps import seconds_of
from recommender.kubectl.reader import NotRead, Reader, object_path
from recommender.kubectl.recommendations import Recommendations, unread_of
from recommender.kubectl.report import Report, ReportSection, ago
from recommender.kubectl.why.events import events_of, events_section
from recommender.kubectl.why.observed import CUSTOM, FORM_ERRORS, RESOURCE, form_problem

_MOST_METRICS: Final = 20
"""At most this many custom metrics are requested for one pod."""


def why_pod(
    reader: Reader, namespace: str, name: str, decided: Callable[[], Recommendations | NotRead], now: float
) -> Report:
    """Return the answer for a pod. Raises KubernetesError if it cannot be read."""
    right = AccessRight("get", "pods", "", namespace, name)
    pod = reader.required_object(object_path("v1", namespace, "pods", name), right)
    if not (pod.get("spec") or {}).get("nodeName"):
        return _unscheduled_report(reader, pod, decided(), now)
    return _scheduled_report(reader, pod, now)


def _unscheduled_report(
    reader: Reader, pod: Mapping[str, Any], decided: Recommendations | NotRead, now: float
) -> Report:
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    conditions = (pod.get("status") or {}).get("conditions") or ()
    scheduled = next((one for one in conditions if one["type"] == "PodScheduled"), None)
    events = events_of(reader, namespace, "Pod", name)
    missing = (*unread_of(decided), *((events.reason,) if isinstance(events, NotRead) else ()))
    sizes = [] if isinstance(decided, NotRead) else [one for one in decided.items if one.get("type") == "clusterSize"]
    said = _scheduler_says(pod, scheduled)
    groups = (_size_section(item, f"{namespace}/{name}") for item in sizes)
    sections = [ReportSection("The scheduler", (said,)), *groups]
    if not sizes and not unread_of(decided):
        sections.append(ReportSection("Node groups", ("The recommender has no recommendation with clusterSize.",)))
    if not isinstance(events, NotRead):
        sections.append(events_section(events, now))
    return Report(
        kind="WhyPod",
        subject=f"pod/{name}",
        namespace=namespace,
        answer=f"pod/{name} has no node: {said}",
        sections=tuple(sections),
        missing=missing,
        details={
            "node": None,
            "phase": (pod.get("status") or {}).get("phase"),
            "scheduled": None if scheduled is None else dict(scheduled),
            "cluster_sizes": [_size_document(item, f"{namespace}/{name}") for item in sizes],
            "events": [] if isinstance(events, NotRead) else events,
        },
    )


def _scheduler_says(pod: Mapping[str, Any], scheduled: Mapping[str, Any] | None) -> str:
    gates = [gate["name"] for gate in (pod.get("spec") or {}).get("schedulingGates") or ()]
    if gates:
        return f"its scheduling gates are not removed: {', '.join(gates)}."
    if scheduled is None:
        scheduler = (pod.get("spec") or {}).get("schedulerName", "default-scheduler")
        return f"the scheduler {scheduler} has not looked at it yet, or does not run."
    return f"{scheduled.get('reason', 'no reason')}: {scheduled.get('message') or 'no message'}"


def _size_document(item: Mapping[str, Any], pod: str) -> dict[str, Any]:
    found = next((one for one in item.get("unschedulable") or () if one["pod"] == pod), None)
    return {
        "recommendation": item["name"],
        "status": item["status"],
        "message": item["message"],
        "waiting": pod in (item.get("waiting") or ()),
        "reason": None if found is None else found["reason"],
        "groups": {} if found is None else dict(found["groups"]),
        "node_groups": list(item.get("node_groups") or ()),
    }


def _size_section(item: Mapping[str, Any], pod: str) -> ReportSection:
    return ReportSection(f"Node groups, by the recommendation {item['name']}", tuple(_size_sentences(item, pod)))


def _size_sentences(item: Mapping[str, Any], pod: str) -> Iterator[str]:
    found = _size_document(item, pod)
    if item["message"]:
        yield f"Status {item['status']}: {item['message']}."
    if found["waiting"]:
        yield "A node that is already there, or on its way, has room for it."
    if found["reason"]:
        yield f"No group can help: {found['reason']}."
    yield from (f"{group}: {reason}" for group, reason in found["groups"].items())
    for group in found["node_groups"]:
        if group["name"] not in found["groups"]:
            reason = f": {group['reason']}" if group["reason"] else ""
            yield f"{group['name']}: {count_of(group['current'], 'node')}, {group['recommended']} recommended{reason}"


def _scheduled_report(reader: Reader, pod: Mapping[str, Any], now: float) -> Report:
    namespace, name, node = pod["metadata"]["namespace"], pod["metadata"]["name"], pod["spec"]["nodeName"]
    used = _resource_metrics(reader, namespace, name)
    custom, lacking = _custom_metrics(reader, namespace, name)
    missing = [*([used.reason] if isinstance(used, NotRead) else []), *lacking]
    usage = {} if isinstance(used, NotRead) else used
    sections = (
        ReportSection("CPU and memory", tuple(_usage_sentences(usage, now)) or ("No values.",)),
        ReportSection("Custom metrics", tuple(_custom_sentences(custom, now)) or ("No values.",)),
    )
    phase = (pod.get("status") or {}).get("phase", "Unknown")
    count = count_of(len(custom), "custom metric")
    with_usage = "with CPU and memory" if usage else "without CPU and memory"
    return Report(
        kind="WhyPod",
        subject=f"pod/{name}",
        namespace=namespace,
        answer=f"pod/{name} is {phase} on {node}, {with_usage}, and has {count}.",
        sections=sections,
        missing=tuple(missing),
        details={"node": node, "phase": phase, "usage": usage or None, "custom_metrics": custom},
    )


def _resource_metrics(reader: Reader, namespace: str, name: str) -> dict[str, Any] | NotRead:
    right = AccessRight("get", "pods", RESOURCE, namespace, name)
    found = reader.object(object_path(f"{RESOURCE}/v1beta1", namespace, "pods", name), right)
    if isinstance(found, NotRead):
        return NotRead(f"CPU and memory: {found.reason}")
    try:
        containers = {one["name"]: dict(one.get("usage") or {}) for one in found.get("containers") or ()}
        return {"time": _readable(found.get("timestamp")), "containers": containers}
    except FORM_ERRORS as error:
        return NotRead(f"CPU and memory: {form_problem(RESOURCE, error)}")


def _custom_metrics(reader: Reader, namespace: str, name: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the values of this pod's custom metrics, and the metrics that could not be read."""
    base = f"/apis/{CUSTOM}/v1beta2"
    listed = reader.object(base, AccessRight("get", base))
    if isinstance(listed, NotRead):
        return [], [f"custom metrics: {listed.reason}"]
    names = (one["name"].partition("/") for one in listed.get("resources") or ())
    served = sorted({metric for kind, _, metric in names if kind == "pods" and metric})
    values, lacking = [], []
    for metric in served[:_MOST_METRICS]:
        path = f"{object_path(f'{CUSTOM}/v1beta2', namespace, 'pods', name)}/{quote(metric, safe='')}"
        found = reader.items(path, AccessRight("get", "pods", CUSTOM, namespace, subresource=metric))
        if isinstance(found, NotRead):
            # Not every metric describes every pod.
            lacking += [] if found.is_absent else [f"pods/{metric}: {found.reason}"]
            continue
        try:
            values += [{"metric": metric, "value": one["value"], "time": _readable(one["timestamp"])} for one in found]
        except FORM_ERRORS as error:
            lacking.append(f"pods/{metric}: {form_problem(CUSTOM, error)}")
    if len(served) > _MOST_METRICS:
        unasked = len(served) - _MOST_METRICS
        were = agreeing(unasked, "was", "were")
        lacking.append(f"{unasked} of {len(served)} custom metrics of pods {were} not asked for")
    return values, lacking


def _readable(moment: str | None) -> str | None:
    """Return a time as it is; raises ValueError or TypeError for anything else."""
    seconds_of(moment)
    return moment


def _usage_sentences(usage: Mapping[str, Any], now: float) -> Iterator[str]:
    for container, amounts in (usage.get("containers") or {}).items():
        yield f"{container}: " + ", ".join(f"{resource} {amount}" for resource, amount in sorted(amounts.items()))
    moment = seconds_of(usage.get("time"))
    if moment is not None:
        yield f"The values are of {ago(moment, now)}."


def _custom_sentences(values: list[dict[str, Any]], now: float) -> Iterator[str]:
    for one in values:
        moment = seconds_of(one["time"])
        yield f"{one['metric']}: {one['value']}" + ("" if moment is None else f" ({ago(moment, now)})")
