"""Determines which VerticalPodAutoscaler also sizes the containers of a workload (pure)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.facts.scale_targets import group_of
from adapter.foundation.cluster.values.state import ClusterState, JsonObject, ObjectKind, Unknown
from recommender.decisions.inputs import ActiveAutoscaler, ActiveAutoscalers, Inputs
from recommender.decisions.targets.owners import UNSTATED_GROUPS
from recommender.decisions.texts.record_texts import some

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.decisions.policy_settings import RecommendationPolicy
    from recommender.decisions.record import TargetReference

GROUP: Final = "autoscaling.k8s.io"
PLURAL: Final = "verticalpodautoscalers"
KIND: Final = "VerticalPodAutoscaler"
_DEFAULT_MODE: Final = "Auto"
_OFF: Final = "Off"
_ALL_OTHERS: Final = "*"


def vertical_autoscaler_kinds(namespaces: Iterable[str]) -> frozenset[ObjectKind]:
    """Return the kinds of objects to read in each of the namespaces; an empty namespace means all."""
    return frozenset(ObjectKind(GROUP, PLURAL, KIND, each, is_optional=True) for each in namespaces)


def known_autoscalers(cluster: ClusterState) -> ActiveAutoscalers:
    """Return the known VerticalPodAutoscalers that write requests.

    The result is empty if they may not be read or if their kind is not installed.
    """
    objects: list[JsonObject] = []
    for kind, found in cluster.objects.items():
        if kind.group == GROUP and not isinstance(found, Unknown):
            objects += found.value
    return active_autoscalers(objects)


def active_autoscalers(objects: Iterable[Mapping[str, Any]]) -> ActiveAutoscalers:
    """Return the VerticalPodAutoscalers among the objects that write requests, without duplicates."""
    found: dict[tuple[str, str, str], set[ActiveAutoscaler]] = defaultdict(set)
    for each in objects:
        metadata, spec = _mapping(each.get("metadata")), _mapping(each.get("spec"))
        reference = _mapping(spec.get("targetRef"))
        mode = str(_mapping(spec.get("updatePolicy")).get("updateMode") or _DEFAULT_MODE)
        if not _sizes_a_container(spec) or (mode == _OFF and not _boosts_a_start(spec)):
            continue
        namespace = str(metadata.get("namespace") or "")
        place = (namespace, str(reference.get("kind")), str(reference.get("name")))
        group = group_of(str(reference.get("apiVersion") or ""))
        found[place].add(ActiveAutoscaler(namespace, str(metadata.get("name") or ""), mode, group))
    return {
        place: tuple(sorted(those, key=lambda one: (one.name, one.mode, one.target_group)))
        for place, those in found.items()
    }


def autoscaler_of(known: ActiveAutoscalers, target: TargetReference) -> ActiveAutoscaler | None:
    """Return the VerticalPodAutoscaler that sizes a target, or None; the version of the API group does not matter."""
    groups = {group_of(target.api_version)} | UNSTATED_GROUPS
    those = known.get((target.namespace, target.kind, target.name), ())
    return next((each for each in those if each.target_group in groups), None)


def notes_on_sizes(policy: RecommendationPolicy, inputs: Inputs) -> tuple[str, ...]:
    """Return notes for the user about targets whose containers another program also sizes."""
    found = []
    targets = policy.targets if policy.each is None else (policy.each,)
    for target in targets:
        autoscaler = autoscaler_of(inputs.vertical_autoscalers, target)
        refusal = inputs.refusals.get((policy.name, target))
        # A write that is refused because of the autoscaler is reported with the target.
        if autoscaler is not None and (refusal is None or refusal.owner != autoscaler.full_name):
            found.append(note_about(autoscaler, "it" if len(targets) == 1 else str(target)))
    return some(found)


def note_about(found: ActiveAutoscaler, sized: str = "it") -> str:
    """Return the note for the user about a workload that a VerticalPodAutoscaler sizes."""
    how, remedy = (
        ("startupBoost", "remove that") if found.only_boosts else (f"updateMode {found.mode}", "set that to Off")
    )
    return f"{found.full_name} sizes {sized} too ({how}): {remedy}, or follow only one of them"


def _sizes_a_container(spec: Mapping[str, Any]) -> bool:
    """Return whether the container policies of a VerticalPodAutoscaler leave at least one container to be sized."""
    modes = {str(each.get("containerName")): str(each.get("mode") or _DEFAULT_MODE) for each in _policies(spec)}
    return modes.get(_ALL_OTHERS) != _OFF or any(mode != _OFF for mode in modes.values())


def _boosts_a_start(spec: Mapping[str, Any]) -> bool:
    """Return whether it gives pods more CPU at their start, which it does in every mode (since version 1.6)."""
    return any(_mapping(each.get("startupBoost")).get("cpu") for each in (spec, *_policies(spec)))


def _policies(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = _mapping(spec.get("resourcePolicy")).get("containerPolicies")
    return [each for each in (found if isinstance(found, list) else ()) if isinstance(each, dict)]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
