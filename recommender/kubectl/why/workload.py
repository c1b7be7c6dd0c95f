"""`why deployment/NAME`, or another workload: who sets its size, what is recommended, and what was written last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.facts.scale_targets import has_size_in_spec
from adapter.foundation.objects.resources import BUILT_IN
from adapter.foundation.reports.counts import count_of
from adapter.foundation.sources.kubernetes.access_rights import AccessRight
from adapter.foundation.sources.kubernetes.client import USER_AGENT
from adapter.foundation.time.timestamps import seconds_of
from recommender.decisions.record import TargetAction, TargetReference
from recommender.decisions.targets.owners import is_target_of
from recommender.decisions.targets.scaled_objects import GROUP as KEDA_GROUP
from recommender.decisions.targets.scaled_objects import PLURAL as KEDA_PLURAL
from recommender.decisions.targets.scaled_objects import as_autoscaler
from recommender.decisions.texts.record_texts import action_text, refusal_text, size_change_text
from recommender.kubectl.reader import NotRead, Reader, object_path
from recommender.kubectl.recommendations import Recommendations, unread_of
from recommender.kubectl.report import Report, ReportSection, ago
from recommender.kubectl.why.autoscaler import GROUP, PLURAL
from recommender.kubectl.why.events import events_of, events_section

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.objects.resources import Resource

_REPLICAS: Final = ("f:spec", "f:replicas")
_KEDA_VERSION: Final = "v1alpha1"


def why_workload(
    reader: Reader, kind: Resource, namespace: str, name: str, decided: Recommendations | NotRead, now: float
) -> Report:
    """Return the answer for an object with a size. Raises KubernetesError if it cannot be read."""
    right = AccessRight("get", kind.plural, kind.group, namespace, name)
    found = reader.required_object(object_path(kind.api_version, namespace, kind.plural, name), right)
    scalers = _autoscalers(reader, namespace, kind.kind, name)
    scaled_objects = _scaled_objects(reader, TargetReference(kind.api_version, kind.kind, namespace, name))
    items = [] if isinstance(decided, NotRead) else decided.about(namespace, kind.kind, name)
    size, failures = _size(reader, kind, found), tuple(_replica_failures(kind, found))
    writers = _writers(found)
    events = events_of(reader, namespace, kind.kind, name)
    missing = (
        *unread_of(decided),
        *(one.reason for one in (size.unread, scalers, scaled_objects, events) if isinstance(one, NotRead)),
    )
    owners = [*_owners(scalers, scaled_objects), *_writing_recommendations(items, writers)]
    sections = [
        ReportSection("Size", (size.sentence, *failures)),
        ReportSection("Who sets it", tuple(_owner_sentences(owners, writers, now))),
        *(recommendation_section(item, target) for item, target in items),
    ]
    if not isinstance(events, NotRead):
        sections.append(events_section(events, now))
    subject = f"{kind.singular}/{name}"
    return Report(
        kind="WhyWorkload",
        subject=subject,
        namespace=namespace,
        answer=_answer(subject, size.wanted, owners, writers, others=_idle(items), is_certain=not missing),
        sections=tuple(sections),
        missing=missing,
        details={
            "replicas": {"wanted": size.wanted, "pods": size.pods, "ready": size.ready},
            "replica_failures": list(failures),
            "owners": owners,
            "writers": writers,
            "recommendations": [dict(item) | {"targets": [dict(target)]} for item, target in items],
            "events": [] if isinstance(events, NotRead) else events,
        },
    )


@dataclass(frozen=True, slots=True)
class _Size:
    """The size of an object; None for a number that is not known."""

    wanted: int | None
    pods: int | None
    ready: int | None
    unread: NotRead | None = None
    """Why the scale of a custom kind, which alone knows its size, could not be read."""

    @property
    def sentence(self) -> str:
        pods = "unknown pods" if self.pods is None else count_of(self.pods, "pod")
        return f"{_text_or_unknown(self.wanted)} wanted, {pods}, {_text_or_unknown(self.ready)} ready."


def _size(reader: Reader, kind: Resource, found: Mapping[str, Any]) -> _Size:
    """Return the size that the object states, or its scale if it is of a kind that may have its size anywhere.

    The other built-in kinds, such as a DaemonSet, have no scale, and most roles have no right to ask for it.
    """
    spec, status = found.get("spec") or {}, found.get("status") or {}
    if has_size_in_spec(kind.api_version, kind.kind):
        return _Size(spec.get("replicas"), status.get("replicas", 0), status.get("readyReplicas", 0))
    if kind in BUILT_IN:
        return _Size(None, None, None)
    namespace, name = found["metadata"]["namespace"], found["metadata"]["name"]
    stated = _Size(spec.get("replicas"), status.get("replicas"), status.get("readyReplicas"))
    right = AccessRight("get", kind.plural, kind.group, namespace, name, "scale")
    scale = reader.object(object_path(kind.api_version, namespace, kind.plural, name, "scale"), right)
    if isinstance(scale, NotRead):
        return stated if scale.is_absent else replace(stated, unread=NotRead(f"its scale: {scale.reason}"))
    # The API omits a 0.
    wanted, pods = ((scale.get(part) or {}).get("replicas", 0) for part in ("spec", "status"))
    return replace(stated, wanted=wanted, pods=pods)


def _replica_failures(kind: Resource, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the controller cannot create or delete pods, in its own words.

    The events that say so are those of the ReplicaSet, not of the Deployment. Custom kinds may give any form to theirs.
    """
    conditions = (found.get("status") or {}).get("conditions") if kind in BUILT_IN else ()
    for one in conditions or ():
        if one.get("type") == "ReplicaFailure" and one.get("status") == "True":
            yield f"ReplicaFailure ({one.get('reason', 'no reason')}): {one.get('message', '')}"


def _autoscalers(reader: Reader, namespace: str, kind: str, name: str) -> list[dict[str, Any]] | NotRead:
    """Return the HPAs that have the object as their target."""
    right = AccessRight("list", PLURAL, GROUP, namespace)
    found = reader.items(object_path(f"{GROUP}/v2", namespace, PLURAL), right)
    if isinstance(found, NotRead):
        return NotRead(f"HPAs: {found.reason}")
    wanted = (kind, name)
    references = ((hpa, hpa["spec"]["scaleTargetRef"]) for hpa in found)
    return [hpa for hpa, reference in references if (reference["kind"], reference["name"]) == wanted]


def _scaled_objects(reader: Reader, target: TargetReference) -> list[str] | NotRead:
    """Return the names of the ScaledObjects of KEDA that have the object as their target."""
    group = f"/apis/{KEDA_GROUP}"
    found = reader.object(group, AccessRight("get", group))
    if not isinstance(found, NotRead):
        path = object_path(f"{KEDA_GROUP}/{_KEDA_VERSION}", target.namespace, KEDA_PLURAL)
        items = reader.items(path, AccessRight("list", KEDA_PLURAL, KEDA_GROUP, target.namespace))
        if not isinstance(items, NotRead):
            return [scaled.name for scaled in map(as_autoscaler, items) if is_target_of(scaled, target)]
        found = items
    # Without the group, KEDA is not installed.
    return [] if found.is_absent else NotRead(f"ScaledObjects: {found.reason}")


def _owners(scalers: list[dict[str, Any]] | NotRead, scaled_objects: list[str] | NotRead) -> Iterator[str]:
    by_hpa = set()
    for hpa in [] if isinstance(scalers, NotRead) else scalers:
        made_by = [
            owner["name"]
            for owner in hpa["metadata"].get("ownerReferences") or ()
            if owner.get("kind") == "ScaledObject"
        ]
        by_hpa.update(made_by)
        yield "".join(f"ScaledObject {each} by " for each in made_by[:1]) + f"hpa/{hpa['metadata']['name']}"
    how = "" if isinstance(scalers, NotRead) else " (without an HPA, as while it is paused)"
    for name in [] if isinstance(scaled_objects, NotRead) else scaled_objects:
        if name not in by_hpa:
            yield f"ScaledObject {name}{how}"


def _writing_recommendations(
    items: list[tuple[Mapping[str, Any], Mapping[str, Any]]], writers: list[dict[str, str | None]]
) -> Iterator[str]:
    """Yield the recommendations that write the size themselves, now or earlier."""
    has_written = any(one["manager"] == USER_AGENT for one in writers)
    for item, target in items:
        if target["action"] == "scale" or (target["action"] == "none" and has_written):
            yield f"recommendation {item['name']}"


def _idle(items: list[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> list[str]:
    """Return the recommendations that change nothing now, and whose answer does not tell whether they write sizes."""
    return [item["name"] for item, target in items if target["action"] == TargetAction.NONE]


def _writers(found: Mapping[str, Any]) -> list[dict[str, str | None]]:
    """Return the field managers of `spec.replicas`, or of what the scale of a custom kind writes, the newest last."""
    managers = [
        {"manager": one.get("manager", ""), "subresource": one.get("subresource") or None, "time": one.get("time")}
        for one in found["metadata"].get("managedFields") or ()
        if one.get("subresource") == "scale" or _REPLICAS[1] in ((one.get("fieldsV1") or {}).get(_REPLICAS[0]) or {})
    ]
    return sorted(managers, key=lambda one: one["time"] or "")


def _owner_sentences(owners: list[str], writers: list[dict[str, str | None]], now: float) -> Iterator[str]:
    yield from (f"{owner} sets it." for owner in owners)
    if len(owners) > 1:
        yield "More than one sets it: they overwrite each other."
    for one in writers:
        moment = seconds_of(one["time"])
        when = "" if moment is None else f", last {ago(moment, now)}"
        what = "the size by its scale" if one["subresource"] == "scale" else "spec.replicas"
        yield f"The field manager {one['manager']} wrote {what}{when}."
    if not owners and not writers:
        yield "Nothing that is known."


def recommendation_section(item: Mapping[str, Any], target: Mapping[str, Any]) -> ReportSection:
    """Return what a recommendation says about one of its targets; both arguments have the form of the page's API."""
    lines = [f"Status {item['status']}" + (f": {item['message']}" if item["message"] else "") + "."]
    recommended = target["recommended_replicas"]
    if recommended is None:
        lines.append("It has no value.")
    else:
        current, wanted = target["current_replicas"], count_of(recommended, "replica")
        lines.append(
            f"Recommended: {wanted}, as now."
            if current == recommended
            else f"Recommended: {size_change_text(current, wanted)}."
        )
    for step in item.get("steps") or ():
        mark = " <- decides" if step["step"] == item["binding"] else ""
        lines.append(f"{step['step']}: {_text_or_unknown(step['value'])} ({step['detail']}){mark}")
    lines.append(_action_sentence(target))
    if target["owner"]:
        lines.append(f"Owner: {target['owner']}.")
    return ReportSection(f"Recommendation {item['name']}", tuple(lines))


def _action_sentence(target: Mapping[str, Any]) -> str:
    """Return what is done with the target, in the words of its events, its conditions and the page."""
    action = next((one for one in TargetAction if one.value == target["action"]), None)
    if action is TargetAction.REFUSED:
        text = refusal_text(target["recommended_replicas"], target["message"])
    else:
        known = target["action"] if action is None else action_text(action, target["message"] or "")
        text = f"{known}: {target['message']}" if target["message"] else known
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def _answer(
    subject: str,
    replicas: int | None,
    owners: list[str],
    writers: list[dict[str, str | None]],
    *,
    others: list[str],
    is_certain: bool,
) -> str:
    """Return who sets the size; `others` are recommendations that may set it, and change nothing now."""
    wants = f"{subject} wants {'an unknown number of replicas' if replicas is None else count_of(replicas, 'replica')}"
    if owners:
        return f"{wants}: {' and '.join(owners)} sets its size."
    last = f", and {writers[-1]['manager']} wrote it last" if writers else ""
    nothing = "nothing sets its size by itself" if is_certain else "nothing that can be read sets its size"
    unless = f" unless recommendation {' or '.join(others)} does" if others else ""
    return f"{wants}: {nothing}{unless}{last}."


def _text_or_unknown(value: object) -> str:
    return "unknown" if value is None else str(value)
