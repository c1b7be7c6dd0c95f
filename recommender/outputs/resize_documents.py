"""Reads the owner of requests from workloads and pods, and changes the requests of their containers. Pure."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.facts.scale_targets import scaled_object_of
from adapter.foundation.objects.quantities import Format, parse_quantity, quantity_text
from recommender.decisions.targets.owners import matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from recommender.outputs.pending_writes import RequestedSize, Resizing

_CPU: Final = "cpu"
MEMORY: Final = "memory"
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def is_worth_a_write(current: int | None, wanted: int, resizing: Resizing) -> bool:
    """Return whether an amount should be written: it is missing or differs enough, and the direction is allowed."""
    differs = current is None or abs(wanted - current) > resizing.threshold_ratio * current
    return differs and _is_allowed(current, wanted, resizing)


def resized_containers(containers: Sequence[Mapping[str, Any]], resizing: Resizing) -> list[dict[str, Any]]:
    """Return the containers with those sizes that are worth a write.

    A limit without an amount of its own changes in proportion to its request. Raises QuantityError if the current
    resources of a container cannot be read.
    """
    return [
        _resized_container(each, _sizes_of(each, resizing.sizes), _sizes_of(each, resizing.limits), resizing)
        for each in containers
    ]


def within_ratio(wanted: int, base: int, ratio: float) -> int:
    """Return the wanted amount, limited to the largest single change from `base`."""
    # The decimal digits of the ratio are used, so that 29% of 100 are 29.
    most = max(1, int(Fraction(repr(ratio)) * base))
    return min(max(wanted, base - most), base + most)


def _sizes_of(container: Mapping[str, Any], sizes: Iterable[RequestedSize]) -> dict[str, RequestedSize]:
    """Return the sizes of one container by resource."""
    return {size.resource: size for size in sizes if size.container == container.get("name")}


def _resized_container(
    container: Mapping[str, Any],
    wanted: Mapping[str, RequestedSize],
    limited: Mapping[str, RequestedSize],
    resizing: Resizing,
) -> dict[str, Any]:
    resources = container.get("resources") or {}
    requests, limits = dict(resources.get("requests") or {}), dict(resources.get("limits") or {})
    for resource in dict.fromkeys((*wanted, *limited)):
        limit = amount_of(resource, limits.get(resource))
        current = amount_of(resource, requests.get(resource))
        # A pod whose template states only a limit requests as much: the API server fills it in.
        current = limit if current is None else current
        sizes = {"requests": (current, wanted.get(resource)), "limits": (limit, limited.get(resource))}
        # Both are changed or neither: a request that grows beyond an unchanged limit would be refused.
        if not any(size is not None and is_worth_a_write(now, size.amount, resizing) for now, size in sizes.values()):
            continue
        request, most = (None if size is None else _allowed_amount(now, size, resizing) for now, size in sizes.values())
        if request is not None:
            requests[resource] = _quantity(resource, request)
        if most is not None:
            limits[resource] = _quantity(resource, most)
        elif limit is not None and request is not None:
            scaled = math.ceil(limit * request / current) if current else limit
            limits[resource] = _quantity(resource, max(scaled, request))
    changed = {**resources} | ({"requests": requests} if requests else {}) | ({"limits": limits} if limits else {})
    return {**container, "resources": changed} if requests or limits else dict(container)


def _allowed_amount(current: int | None, size: RequestedSize, resizing: Resizing) -> int | None:
    """Return the amount to write; None if the amount may not change in this direction."""
    wanted, step = size.amount, size.step
    if step is not None and current is not None:
        wanted = max(within_ratio(wanted, current, step.ratio), step.least)
        wanted = wanted if step.most is None else min(wanted, step.most)
    return wanted if _is_allowed(current, wanted, resizing) else None


def _is_allowed(current: int | None, wanted: int, resizing: Resizing) -> bool:
    """Return whether the amount may change in this direction."""
    if current is None or wanted > current:
        return resizing.up
    return wanted == current or resizing.down


def amount_of(resource: str, quantity: object) -> int | None:
    """Return a quantity of CPU in millicores, or of memory in bytes (rounded up); None if it is missing."""
    if quantity is None:
        return None
    milli = parse_quantity(str(quantity)).milli_value()
    return -(-milli // 1000) if resource == MEMORY else milli


def _quantity(resource: str, amount: int) -> str:
    return (
        quantity_text(amount * 1000, Format.BINARY_SI)
        if resource == MEMORY
        else quantity_text(amount, Format.DECIMAL_SI)
    )


def manager_of_resources(workload: Mapping[str, Any], patterns: Iterable[str]) -> str:
    """Return the first field manager that matches one of `patterns` and owns resources of the template; "" if none.

    `*` in a pattern matches any text.
    """
    for entry in (workload.get("metadata") or {}).get("managedFields") or ():
        name = str(entry.get("manager") or "")
        owns = '"f:resources"' in json.dumps(
            ((entry.get("fieldsV1") or {}).get("f:spec") or {}).get("f:template") or {}
        )
        if owns and matches(name, patterns):
            return name
    return ""


def objects_controlled_by(objects: Iterable[Mapping[str, Any]], uids: frozenset[str]) -> list[dict[str, Any]]:
    """Return the objects whose controller has one of these UIDs."""
    return [
        dict(each)
        for each in objects
        if any(
            owner.get("controller") and owner.get("uid") in uids
            for owner in (each.get("metadata") or {}).get("ownerReferences") or ()
        )
    ]


def is_running(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod has not ended and is not being deleted."""
    has_ended = (pod.get("status") or {}).get("phase") in _ENDED
    return not has_ended and not (pod.get("metadata") or {}).get("deletionTimestamp")


def is_rolling_out(workload: Mapping[str, Any]) -> bool:
    """Return whether a new version of a workload's pods is being rolled out. Raises FactError.

    A DaemonSet is read separately: it has no `replicas`, and its status counts pods in other fields.
    """
    if workload.get("kind") != "DaemonSet":
        return scaled_object_of(workload).rollout
    status = workload.get("status") or {}
    if (status.get("observedGeneration") or 0) < ((workload.get("metadata") or {}).get("generation") or 0):
        return True
    strategy = ((workload.get("spec") or {}).get("updateStrategy") or {}).get("type")
    # With OnDelete, a pod is replaced only when somebody deletes it.
    updated, wanted = status.get("updatedNumberScheduled") or 0, status.get("desiredNumberScheduled") or 0
    return bool(strategy != "OnDelete" and updated < wanted)


def can_be_resized(pod: Mapping[str, Any], resizing: Resizing) -> bool:
    """Return whether the API server would let a pod be resized in place. Raises QuantityError.

    It does not resize Windows pods, nor pods with resources of their own (`spec.resources`) before Kubernetes 1.36,
    nor if the quality-of-service class would change: a pod without requests and limits, for example, would no longer be
    BestEffort.
    """
    spec = pod["spec"]
    if (spec.get("os") or {}).get("name") == "windows":
        return False
    whole = spec.get("resources") or {}
    if whole.get("requests") or whole.get("limits"):
        # They alone determine the class. A kubelet that resizes such pods reports what the whole pod has; a pod that
        # no kubelet has reported on yet says nothing.
        status = pod.get("status") or {}
        return "resources" in status or not status.get("containerStatuses")
    before, others = spec["containers"], spec.get("initContainers") or ()
    return _quality_of_service([*before, *others]) == _quality_of_service(
        [*resized_containers(before, resizing), *others]
    )


def _quality_of_service(containers: Iterable[Mapping[str, Any]]) -> str:
    """Return the quality-of-service class of a pod with these containers, as Kubernetes defines it."""
    found = [each.get("resources") or {} for each in containers]
    amounts = [
        tuple(amount_of(resource, (each.get(part) or {}).get(resource)) for part in ("requests", "limits"))
        for each in found
        for resource in (_CPU, MEMORY)
    ]
    if not any(request or limit for request, limit in amounts):
        return "BestEffort"
    # A request that is not stated equals the limit.
    is_exact = all(limit and request in {None, limit} for request, limit in amounts)
    return "Guaranteed" if is_exact else "Burstable"


def labels_of_selector(workload: Mapping[str, Any]) -> str:
    """Return the `matchLabels` of a workload's selector as a label selector; `matchExpressions` are left out."""
    selector = (workload.get("spec") or {}).get("selector") or {}
    return ",".join(f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items()))
