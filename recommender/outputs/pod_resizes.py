"""Determines which pods of a workload are resized in place next, and with which containers. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from recommender.outputs.resize_documents import MEMORY, amount_of, resized_containers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from recommender.outputs.pending_writes import Resizing

_TURN_PODS: Final = 50
"""The number of pods by which each turn begins later than the one before it."""
_PENDING: Final = "PodResizePending"
_IN_PROGRESS: Final = "PodResizeInProgress"
_FAILED: Final = (_IN_PROGRESS, "True", "Error")
_UNFINISHED: Final = {
    (_PENDING, "True", "Infeasible"): "change max, or set inPlace to false",
    _FAILED: "its kubelet tries again; if it never succeeds, set inPlace to false",
}
"""The advice for a resize, by the condition that says why the kubelet has not carried it out."""


def resized_pods(pods: Sequence[Mapping[str, Any]], resizing: Resizing, turn: int) -> list[dict[str, Any]]:
    """Return the running pods of a workload that change, with their new containers. Raises QuantityError.

    Resizing may restart a container (`resizePolicy`). If it does so in any pod, only changed pods that are not ready
    are returned; if all are ready, a single pod is returned, and only while all pods of the workload are ready and none
    is being resized. Each turn begins with a different pod, so that every pod comes first at some time.
    """
    after = [(pod, _next_containers(pod, resizing)) for pod in pods]
    changed = [(pod, containers) for pod, containers in after if containers != pod["spec"]["containers"]]
    if any(_restarts(pod["spec"]["containers"], containers) for pod, containers in changed):
        broken = [each for each in changed if not _has_condition(each[0], "Ready")]
        place = turn % max(len(changed), 1)
        changed = broken or (changed[place : place + 1] if all(map(_is_settled, pods)) else [])
    begin = turn * _TURN_PODS % max(len(changed), 1)
    changed = [*changed[begin:], *changed[:begin]]
    return [{**pod, "spec": {**pod["spec"], "containers": containers}} for pod, containers in changed]


def _next_containers(pod: Mapping[str, Any], resizing: Resizing) -> list[dict[str, Any]]:
    """Return the containers of a pod with the sizes that are written next.

    A limit of memory that shrinks without a restart is written last, by itself. Kubernetes 1.33 refuses it; later
    kubelets carry out no part of the resize while the container uses more than the new limit. Amounts that grow must
    not wait for that.
    """
    current = pod["spec"]["containers"]
    after = resized_containers(current, resizing)
    lowered = [_lowers_memory(old, new) for old, new in zip(current, after, strict=True)]
    others = [
        _with_memory_of(old, new) if is_lowered else new
        for old, new, is_lowered in zip(current, after, lowered, strict=True)
    ]
    if others != current:
        return _without_failed_shrinks(pod, others)
    return after if not any(lowered) or _has_no_resize(pod) else others


def _lowers_memory(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether the limit of a container's memory shrinks, or is set for the first time, without a restart."""
    before, after = _memory_limit(old), _memory_limit(new)
    if after is None or (before is not None and after >= before):
        return False
    restarts = {"resourceName": MEMORY, "restartPolicy": "RestartContainer"}
    return restarts not in (new.get("resizePolicy") or ())


def _memory_limit(container: Mapping[str, Any]) -> int | None:
    return amount_of(MEMORY, ((container.get("resources") or {}).get("limits") or {}).get(MEMORY))


def _with_memory_of(memory: Mapping[str, Any], container: Mapping[str, Any]) -> dict[str, Any]:
    """Return the container with the request and the limit of memory that another one states."""
    resources = dict(container.get("resources") or {})
    stated = memory.get("resources") or {}
    for part in ("requests", "limits"):
        amounts = {name: amount for name, amount in (resources.get(part) or {}).items() if name != MEMORY}
        amounts |= {name: amount for name, amount in (stated.get(part) or {}).items() if name == MEMORY}
        resources[part] = amounts
    return {**container, "resources": {part: amounts for part, amounts in resources.items() if amounts}}


def _without_failed_shrinks(pod: Mapping[str, Any], containers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the containers with their former memory where the kubelet fails to lower it.

    Until it has lowered the memory, the kubelet would carry out no other change. The memory is lowered again
    afterwards.
    """
    if _FAILED not in _conditions(pod) or not _is_seen(pod):
        return list(containers)
    running = {each.get("name"): each for each in (pod.get("status") or {}).get("containerStatuses") or ()}
    return [
        _with_memory_of(now, each)
        if (now := running.get(each.get("name"))) is not None and _lowers_memory(now, each)
        else each
        for each in containers
    ]


def unfinished_resize(pods: Iterable[Mapping[str, Any]]) -> str:
    """Return why a node never carries out the resize of one of the pods, or fails to, and what to do about it.

    The result is empty if there is no such pod.
    """
    for pod in pods:
        for each in (pod.get("status") or {}).get("conditions") or ():
            fix = _UNFINISHED.get((each.get("type"), each.get("status"), each.get("reason")))
            if fix is not None and _is_seen(pod):
                reason = each.get("message") or "its node cannot do the resize"
                return f"pod {pod['metadata']['name']} keeps its former size: {reason}: {fix}"
    return ""


def _restarts(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a container restarts because of this change of its resources."""
    return any(
        policy.get("restartPolicy") == "RestartContainer"
        and any(
            (old.get("resources") or {}).get(part, {}).get(policy.get("resourceName"))
            != (new.get("resources") or {}).get(part, {}).get(policy.get("resourceName"))
            for part in ("requests", "limits")
        )
        for old, new in zip(before, after, strict=True)
        for policy in old.get("resizePolicy") or ()
    )


def _is_settled(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is ready and the kubelet has finished the last change of the pod."""
    return _is_seen(pod) and _has_condition(pod, "Ready") and not _has_condition(pod, _IN_PROGRESS)


def _has_no_resize(pod: Mapping[str, Any]) -> bool:
    """Return whether the kubelet has carried out all of the last resize."""
    return _is_seen(pod) and not any(_has_condition(pod, name) for name in (_PENDING, _IN_PROGRESS))


def _is_seen(pod: Mapping[str, Any]) -> bool:
    """Return whether the kubelet has seen the last change of the pod, as far as the pod states that."""
    generation = (pod.get("metadata") or {}).get("generation") or 0
    return bool((pod.get("status") or {}).get("observedGeneration", generation) >= generation)


def _has_condition(pod: Mapping[str, Any], name: str) -> bool:
    return any(kind == name and status == "True" for kind, status, _ in _conditions(pod))


def _conditions(pod: Mapping[str, Any]) -> list[tuple[object, object, object]]:
    """Return type, status and reason of each condition of a pod."""
    found = (pod.get("status") or {}).get("conditions") or ()
    return [(each.get("type"), each.get("status"), each.get("reason")) for each in found]
