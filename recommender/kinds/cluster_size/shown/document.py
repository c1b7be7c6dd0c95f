"""The answer of a cluster size recommendation as keys of its JSON item.

Keys are documented in docs/cluster-size.md. They are never absent; where there is no value, it is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.texts.record_texts import money, plain
from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer
from recommender.kinds.cluster_size.model.pod_places import PlaceKind, PodOrigin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.cluster_size.model.answer import Advice, LowerBound, Removal, UnschedulablePods
    from recommender.kinds.cluster_size.model.pod_places import PodName, PodPlace


def size_keys(answer: ClusterSizeAnswer | None) -> dict[str, object]:
    """Return the keys of an item; all of them are null without an answer."""
    if answer is None:
        # The item itself has steps without an answer, too.
        return {key: None for key in size_keys(ClusterSizeAnswer()) if key != "steps"}
    return {
        "node_groups": [
            {
                "name": group.name,
                "current": group.current,
                "recommended": group.recommended,
                "after_removals": group.after_removals,
                "min": group.min_size,
                "max": group.max_size,
                "reason": group.reason,
                "left_out": group.is_left_out,
            }
            for group in answer.groups
        ],
        "removals": [_removal(removal) for removal in answer.removals],
        "kept": [
            {"node": node.node, "group": node.group, "reason": node.reason, "pod": str(node.pod) if node.pod else None}
            for node in answer.kept
        ],
        "failed_machines": [
            {
                "machine": machine.provider_id,
                "group": machine.group,
                "reason": machine.failure,
                "due": machine.is_due,
                "waits_for": machine.waits or None,
            }
            for machine in answer.failed_machines
        ],
        "unschedulable": [item for alike in answer.unschedulable for item in _unschedulable(alike, answer.displaced)],
        "fits_existing": [
            {"pod": str(place.pod), "node": place.node}
            for place in answer.places
            if place.kind is PlaceKind.EXISTING and place.origin is not PodOrigin.EXPECTED
        ],
        "places": [_place(place) for place in answer.places if place.origin is not PodOrigin.EXPECTED],
        "unavailable_nodes": [
            {"node": one.node, "group": one.group or None, "state": one.state.value, "detail": one.detail or None}
            for one in answer.unavailable
        ],
        "steps": [
            {"step": step.step, "group": step.group or None, "value": plain(step.value), "detail": step.detail}
            for step in answer.steps
        ],
        "bound": _bound_keys(answer.bound),
        "advice": [_advice(advice) for advice in answer.advice],
        "saved_per_hour": _money(answer.saved_per_hour),
        "pending_pods": answer.pending_pods,
        "waiting": [str(pod) for pod in answer.waiting],
        "left_out": list(answer.notes),
    }


def _removal(removal: Removal) -> dict[str, object]:
    return {
        "node": removal.node,
        "group": removal.group,
        "utilization_ratio": round(removal.utilization_ratio, 4),
        "reason": removal.reason,
        "unneeded_seconds": None if removal.unneeded_seconds is None else plain(round(removal.unneeded_seconds, 1)),
        "due": removal.is_due,
        "moved_pods": removal.moved_pods,
        "moves": [{"pod": str(move.pod), "node": move.node} for move in removal.moves],
        "saved_per_hour": _money(removal.saved_per_hour),
    }


def _unschedulable(alike: UnschedulablePods, displaced: Mapping[PodName, str]) -> list[dict[str, object]]:
    """Return an item for each pod, so that every pod can be found by name; equivalent pods follow each other."""
    groups = dict(alike.groups)
    return [
        {
            "pod": str(pod),
            "groups": groups,
            "reason": alike.reason or None,
            "missing": alike.missing or None,
            "moved_from": displaced.get(pod),
        }
        for pod in alike.pods
    ]


def _place(place: PodPlace) -> dict[str, object]:
    return {
        "pod": str(place.pod),
        "kind": place.kind.value,
        "node": place.node or None,
        "group": place.group or None,
        "moved_from": place.source or None,
    }


def _bound_keys(bound: LowerBound | None) -> dict[str, object] | None:
    if bound is None:
        return None
    return {
        "nodes": bound.nodes,
        "lower_bound": bound.bound,
        "cost_per_hour": _money(bound.cost),
        "lower_bound_cost_per_hour": None if bound.cost_bound is None else money(bound.cost_bound, is_lower_bound=True),
    }


def _advice(advice: Advice) -> dict[str, object]:
    return {
        "kind": advice.kind,
        "nodes": list(advice.nodes),
        "detail": advice.detail,
        "saved_per_hour": _money(advice.saved_per_hour),
    }


def _money(amount: float | None) -> float | None:
    return None if amount is None else money(amount)
