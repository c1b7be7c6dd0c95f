"""`why hpa/NAME`: each metric as the controller sees it, and the effect of the next sync."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adapter.foundation.hpa.documents import HpaDocumentError, pod_of, spec_of
from adapter.foundation.hpa.proposals import HpaWorkload, Proposal, Unavailable
from adapter.foundation.objects.quantities import milli_quantity
from adapter.foundation.objects.resources import ResolveResource, UnknownResourceError
from adapter.foundation.reports.counts import first_names
from adapter.foundation.sources.kubernetes.access_rights import AccessRight
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.time.timestamps import seconds_of
from adapter.metrics.readings.explain.explanation import Explanation
from recommender.decisions.texts.times import rfc3339
from recommender.kubectl.reader import NotRead, Reader, object_path
from recommender.kubectl.report import Report, ReportSection, ago
from recommender.kubectl.why.controller_version import ControllerBehaviour, controller_behaviour, succeeded_sentences
from recommender.kubectl.why.next_sync import AMBIGUOUS_SELECTOR, NextSync, next_sync
from recommender.kubectl.why.observed import RESOURCE, AskedMetric, MetricsApis

GROUP: Final = "autoscaling"
PLURAL: Final = "horizontalpodautoscalers"
_MOST_VALUES: Final = 10
NOT_ASKED: Final = ReportSection(
    "Rules and queries",
    (
        "Not asked: the API server does not pass your credentials on to the adapter.",
        "Name the adapter with --server, such as a port that kubectl port-forward opens, to see them.",
    ),
)


@dataclass(frozen=True, slots=True)
class _Target:
    """The scale target, with its pods."""

    workload: HpaWorkload
    selector: str


@dataclass(frozen=True, slots=True)
class _ShownMetric:
    """A metric of an HPA with all that is known about it."""

    asked: AskedMetric
    proposal: Proposal | None
    found: Explanation | NotRead | None
    metric: Mapping[str, Any]
    """The metric as the HPA states it."""


def why_autoscaler(
    reader: Reader,
    resolve: ResolveResource,
    explain: Callable[[AskedMetric], Explanation | NotRead] | None,
    namespace: str,
    name: str,
    now: float,
) -> Report:
    """Return the answer for an HPA. Raises KubernetesError if it cannot be read."""
    right = AccessRight("get", PLURAL, GROUP, namespace, name)
    hpa = reader.required_object(object_path(f"{GROUP}/v2", namespace, PLURAL, name), right)
    target = _target(reader, resolve, namespace, hpa)
    conditions = _conditions(hpa)
    if isinstance(target, NotRead):
        answer = f"hpa/{name} cannot be calculated: {target.reason}."
        return _report(hpa, answer, (conditions,), (target.reason,), {})
    apis = MetricsApis(reader, namespace, target.selector, resolve)
    asked = [apis.ask(metric) for metric in hpa["spec"].get("metrics") or ()]
    explained = [explain(one) if explain and one.api != RESOURCE else None for one in asked]
    lacking = {one.reason: None for one in explained if isinstance(one, NotRead)}
    try:
        spec = spec_of(hpa)
    except HpaDocumentError as error:
        return _report(hpa, f"hpa/{name} cannot be calculated: {error}.", (conditions,), (str(error), *lacking), {})
    behaviour = controller_behaviour(reader, hpa, spec, target.workload)
    spec = replace(spec, settings=replace(spec.settings, ignores_succeeded=behaviour.ignores_succeeded))
    last = seconds_of((hpa.get("status") or {}).get("lastScaleTime"))
    following = next_sync(
        spec,
        target.workload,
        [one.observation for one in asked],
        last,
        now,
        scaled_to_zero=behaviour.scaled_to_zero,
        ambiguous=_ambiguity(hpa),
    )
    proposals = following.free.proposals or (None,) * len(asked)
    shown = [_ShownMetric(*each) for each in zip(asked, proposals, explained, hpa["spec"]["metrics"], strict=True)]
    details = {
        "target": _target_document(hpa, target, spec.min_replicas, spec.max_replicas),
        "next": _next_document(following),
        "metrics": [_metric_document(one, now) for one in shown],
        "conditions": _condition_documents(hpa),
    }
    sections = (
        *(_metric_section(one, now) for one in shown),
        *_ended_pods_sections(target, behaviour),
        _steps_section(following),
        conditions,
        *((NOT_ASKED,) if explain is None else ()),
    )
    missing = (*_unavailable(asked), *lacking, *filter(None, (behaviour.unread,)))
    return _report(hpa, f"hpa/{name}: {following.sentence}.", sections, missing, details)


def _steps_section(following: NextSync) -> ReportSection:
    steps = following.free.steps
    return ReportSection("Steps", tuple(f"{one.step}: {_count(one.value)} ({one.detail})" for one in steps))


def _ended_pods_sections(target: _Target, behaviour: ControllerBehaviour) -> tuple[ReportSection, ...]:
    sentences = () if behaviour.ignores_succeeded else succeeded_sentences(target.workload)
    return (ReportSection("Pods that have ended", sentences),) if sentences else ()


def _unavailable(asked: Sequence[AskedMetric]) -> list[str]:
    return [f"{one.metric}: {one.observation.message}" for one in asked if isinstance(one.observation, Unavailable)]


def _report(
    hpa: Mapping[str, Any],
    answer: str,
    sections: tuple[ReportSection, ...],
    missing: tuple[str, ...],
    details: Mapping[str, Any],
) -> Report:
    metadata = hpa["metadata"]
    return Report(
        kind="WhyAutoscaler",
        subject=f"hpa/{metadata['name']}",
        namespace=metadata["namespace"],
        answer=answer,
        sections=sections,
        missing=missing,
        details=details or {"conditions": _condition_documents(hpa)},
    )


def _target(reader: Reader, resolve: ResolveResource, namespace: str, hpa: Mapping[str, Any]) -> _Target | NotRead:
    """Return what the controller reads of the target: its scale, and the pods that the scale selects."""
    reference = hpa["spec"]["scaleTargetRef"]
    group = str(reference.get("apiVersion", "")).rpartition("/")[0]
    try:
        kind = resolve(group, reference["kind"])
    except (UnknownResourceError, KubernetesError) as error:
        return NotRead(f"the target's kind is not known: {error}")
    path = object_path(kind.api_version, namespace, kind.plural, reference["name"], "scale")
    scale = reader.object(
        path, AccessRight("get", kind.plural, kind.group, namespace, reference["name"], subresource="scale")
    )
    if isinstance(scale, NotRead):
        return _absent(reference, namespace) if scale.is_absent else scale
    status = scale.get("status") or {}
    selector = status.get("selector", "")
    if not selector:
        return NotRead(f"the scale of {reference['kind']} {reference['name']} has no selector, which the HPA needs")
    pods = reader.items(
        object_path("v1", namespace, "pods"), AccessRight("list", "pods", "", namespace), {"labelSelector": selector}
    )
    if isinstance(pods, NotRead):
        return pods
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    return _Target(HpaWorkload(replicas, status.get("replicas", 0), tuple(map(pod_of, pods))), selector)


def _absent(reference: Mapping[str, Any], namespace: str) -> NotRead:
    named = f"{reference['kind']} {reference['name']}"
    return NotRead(f"its target {named} does not exist in {namespace}, or has no scale: check spec.scaleTargetRef")


def _metric_section(one: _ShownMetric, now: float) -> ReportSection:
    return ReportSection(f"{one.metric['type']} metric {one.asked.metric}", tuple(_metric_sentences(one, now)))


def _metric_sentences(one: _ShownMetric, now: float) -> Iterator[str]:
    asked, proposal, found = one.asked, one.proposal, one.found
    if isinstance(asked.observation, Unavailable):
        yield f"No value: {asked.observation.message}."
    else:
        values = (f"{name} {milli_quantity(value)}" for name, value in sorted(asked.values_milli.items()))
        yield f"Value: {first_names(values, _MOST_VALUES)}."
        if asked.newest is not None:
            yield f"The newest value is of {ago(asked.newest, now)}."
    yield f"Target: {_goal(one.metric)}."
    if proposal is not None and proposal.replicas is not None:
        yield f"It asks for {proposal.replicas}: {proposal.detail}."
    elif proposal is not None and not isinstance(asked.observation, Unavailable):
        yield f"It cannot be used: {proposal.detail}."
    if isinstance(found, Explanation):
        yield f"Rule: {found.rule or 'none'}."
        yield f"Query: {found.query or 'none'}"
        if not asked.values_milli:
            yield f"Cause: {found.cause}." + (f" Repair: {found.fix}." if found.fix else "")
    yield f"Asked: {asked.path}"


def _goal(metric: Mapping[str, Any]) -> str:
    kind = metric["type"]
    source = metric[kind[0].lower() + kind[1:]]
    target = source["target"]
    for key, words in (("averageUtilization", "{}% of the requests"), ("averageValue", "{} a pod"), ("value", "{}")):
        if key in target:
            return words.format(target[key])
    return str(target["type"])


def _conditions(hpa: Mapping[str, Any]) -> ReportSection:
    lines = [
        f"{one['type']} is {one['status']} ({one['reason']}): {one['message']}" for one in _condition_documents(hpa)
    ]
    return ReportSection("Conditions of the HPA, as its controller wrote them", tuple(lines) or ("None yet.",))


def _condition_documents(hpa: Mapping[str, Any]) -> list[dict[str, str]]:
    found: Sequence[Mapping[str, str]] = (hpa.get("status") or {}).get("conditions") or ()
    return [{key: one.get(key, "") for key in ("type", "status", "reason", "message")} for one in found]


def _ambiguity(hpa: Mapping[str, Any]) -> str:
    """Return the controller's message that several HPAs select the pods; empty otherwise."""
    found = (one for one in _condition_documents(hpa) if one["reason"] == AMBIGUOUS_SELECTOR)
    return next((one["message"] or "several HPAs select its pods" for one in found if one["status"] == "False"), "")


def _target_document(hpa: Mapping[str, Any], target: _Target, minimum: int, maximum: int) -> dict[str, Any]:
    reference = hpa["spec"]["scaleTargetRef"]
    return {
        "kind": reference["kind"],
        "name": reference["name"],
        "replicas": target.workload.spec_replicas,
        "pods": len(target.workload.pods),
        "min_replicas": minimum,
        "max_replicas": maximum,
    }


def _next_document(following: NextSync) -> dict[str, Any]:
    return {
        "replicas": following.replicas,
        "certain": following.is_certain,
        "held_for_seconds": following.wait_seconds,
        "reason": following.reason,
        "steps": [{"step": step.step, "value": step.value, "detail": step.detail} for step in following.free.steps],
    }


def _metric_document(one: _ShownMetric, now: float) -> dict[str, Any]:
    asked, proposal = one.asked, one.proposal
    explained = one.found if isinstance(one.found, Explanation) else None
    return {
        "metric": asked.metric,
        "api": asked.api,
        "path": asked.path,
        "selector": asked.selector or None,
        "values": {name: milli_quantity(value) for name, value in sorted(asked.values_milli.items())},
        "newest": None if asked.newest is None else rfc3339(asked.newest),
        "age_seconds": None if asked.newest is None else round(max(now - asked.newest, 0.0), 1),
        "error": asked.observation.message if isinstance(asked.observation, Unavailable) else None,
        "replicas": None if proposal is None else proposal.replicas,
        "calculation": None if proposal is None else proposal.detail,
        "rule": explained.rule if explained else None,
        "query": explained.query if explained else None,
    }


def _count(value: int | None) -> str:
    return "no number" if value is None else str(value)
