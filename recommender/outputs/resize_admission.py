"""Determines whether LimitRanges and ResourceQuotas would forbid pods with changed requests. Pure.

The API server accepts any template: it refuses only the pods of the rollout, which then stalls halfway. The rules are
those of the Kubernetes admission plugins LimitRanger and ResourceQuota, for CPU and memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from adapter.foundation.objects.grouping import group_values
from adapter.foundation.objects.quantities import Quantity, parse_quantity

_RESOURCES: Final = ("cpu", "memory")
_SECTIONS: Final = ("requests", "limits")
_INIT: Final = "initContainers"
_NONE: Final = Quantity(0)

_AmountOf: TypeAlias = Callable[[Mapping[str, Any], str, str], Quantity | None]
"""Returns what a container or a pod states in a section (`requests` or `limits`) for a resource."""


def with_defaults(spec: Mapping[str, Any], ranges: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the spec of a template with the requests and limits that its pods get when they are created.

    A request defaults to the limit of its container; what is missing then comes from LimitRanges.
    """
    limits: dict[str, object] = {}
    requests: dict[str, object] = {}
    for item in (item for _, item in _items_of(ranges) if item["type"] == "Container"):
        # As the API server completes a LimitRange.
        most = {**(item.get("max") or {}), **(item.get("default") or {})}
        least = {**(item.get("min") or {}), **most, **(item.get("defaultRequest") or {})}
        limits, requests = {**most, **limits}, {**least, **requests}

    def completed(container: Mapping[str, Any]) -> dict[str, Any]:
        resources = container.get("resources") or {}
        own = resources.get("limits") or {}
        stated = {**requests, **own, **(resources.get("requests") or {})}
        return {**container, "resources": {"limits": {**limits, **own}, "requests": stated}}

    return {**spec} | {key: [completed(each) for each in spec.get(key) or ()] for key in ("containers", _INIT)}


def limit_range_refusal(spec: Mapping[str, Any], ranges: Iterable[Mapping[str, Any]]) -> str:
    """Return why a LimitRange forbids a pod with this spec; empty if none does. Raises QuantityError."""
    for name, item in _items_of(ranges):
        is_pod = item["type"] == "Pod"
        parts = [spec] if is_pod else [*spec["containers"], *(spec.get(_INIT) or ())]
        for part in parts:
            what = "the pod" if is_pod else f"container {part.get('name')}"
            amounts = _amount_of_pod if is_pod else _stated_amount
            for missing in () if is_pod and _is_stated_as_a_whole(spec) else _missing_in_range(part, item, amounts):
                return f"{what} would have no {missing}, which LimitRange {name} requires: set one, or change it"
            for problem in _problems_of_range(part, item, amounts):
                return f"{what} would have {problem}, which LimitRange {name} forbids: change it, or min or max"
    return ""


def _items_of(ranges: Iterable[Mapping[str, Any]]) -> Iterator[tuple[object, Mapping[str, Any]]]:
    """Yield the limits on containers and pods, each with the name of its LimitRange."""
    for each in ranges:
        for item in (each.get("spec") or {}).get("limits") or ():
            if item.get("type") in {"Container", "Pod"}:
                yield (each.get("metadata") or {}).get("name"), item


def _missing_in_range(part: Mapping[str, Any], item: Mapping[str, Any], amount_of: _AmountOf) -> Iterator[str]:
    """Yield what a LimitRange bounds and a container or pod does not state.

    Containers have the defaults of LimitRanges already. There are none for the ratio, nor for pods.
    """
    for resource in _RESOURCES:
        has_ratio = _bound_of(item, "maxLimitRequestRatio", resource) is not None
        for section, bound in (("requests", "min"), ("limits", "max")):
            amount = amount_of(part, section, resource)
            if amount is None and (has_ratio or _bound_of(item, bound, resource) is not None):
                yield f"{section.removesuffix('s')} of {resource}"


def _problems_of_range(part: Mapping[str, Any], item: Mapping[str, Any], amount_of: _AmountOf) -> Iterator[str]:
    for resource in _RESOURCES:
        request, limit = (amount_of(part, section, resource) for section in _SECTIONS)
        most, least = _bound_of(item, "max", resource), _bound_of(item, "min", resource)
        ratio = _bound_of(item, "maxLimitRequestRatio", resource)
        for section, amount in (("request", request), ("limit", limit)):
            if amount is not None and most is not None and most < amount:
                yield f"a {section} of {amount} {resource}, more than {most}"
            if amount is not None and least is not None and amount < least:
                yield f"a {section} of {amount} {resource}, less than {least}"
        if request is None or limit is None:
            continue
        # The limit of a pod is that of the containers that have one.
        if limit < request and item["type"] == "Container":
            yield f"a request of {request} {resource}, more than its limit of {limit}"
        if ratio is not None and ratio.nanos * request.nanos < limit.nanos * 10**9:
            yield f"a limit of {limit} {resource} with a request of {request}, more than {ratio} times as much"


def quota_refusal(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    pods: int,
    quotas: Iterable[Mapping[str, Any]],
    *,
    needs_room_first: bool,
) -> str:
    """Return why a ResourceQuota forbids a change of the specs of `pods` pods; empty if none forbids it.

    `needs_room_first` states whether the rollout creates a new pod before it deletes an old one (see the function of
    this name). Quotas with scopes are ignored, since it is not known here whether they apply to these pods. Raises
    QuantityError.
    """
    for each in quotas:
        spec, status = each.get("spec") or {}, each.get("status") or {}
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue
        name, limited = (each.get("metadata") or {}).get("name"), spec.get("hard") or {}
        missing = _missing_for_quota(after, limited) if pods else ""
        if missing:
            return f"its pods would not set {missing}, which ResourceQuota {name} requires: set it"
        for key, hard in limited.items():
            section, resource = _section_and_resource(key)
            if not resource:
                continue
            old, new = (_amount_of_pod(spec, section, resource) or _NONE for spec in (before, after))
            used = parse_quantity(str((status.get("used") or {}).get(key, "0")))
            added = max((new.nanos - old.nanos) * pods, new.nanos if needs_room_first and pods else 0)
            if added > 0 and used.nanos + added > parse_quantity(str(hard)).nanos:
                needed = Quantity(used.nanos + added, new.format)
                return f"its rollout would need {key} of {needed}, but ResourceQuota {name} allows {hard}: raise it"
    return ""


def _missing_for_quota(spec: Mapping[str, Any], limited: Iterable[str]) -> str:
    """Return which containers lack an amount that a quota limits: each must state it, as a pod without one is refused.

    The result is empty if there are none, or if the pod as a whole states resources.
    """
    if _is_stated_as_a_whole(spec):
        return ""
    found = group_values(
        (key, str(container.get("name")))
        for key in sorted(limited)
        for container in (*spec["containers"], *(spec.get(_INIT) or ()))
        if (place := _section_and_resource(key))[1] and _stated_amount(container, *place) is None
    )
    return "; ".join(f"{key} for container {', '.join(names)}" for key, names in found.items())


def needs_room_first(workload: Mapping[str, Any], pods: int) -> bool:
    """Return whether a rollout creates a new pod before it deletes an old one.

    It does so if surge is allowed but no pod may be unavailable. This holds for a Deployment of up to three replicas
    with the defaults of 25%.
    """
    spec, kind = workload.get("spec") or {}, workload.get("kind")
    strategy = spec.get("strategy" if kind == "Deployment" else "updateStrategy") or {}
    if kind not in {"Deployment", "DaemonSet"} or strategy.get("type") in {"Recreate", "OnDelete"}:
        return False
    update = strategy.get("rollingUpdate") or {}
    default_surge, default_unavailable = ("25%", "25%") if kind == "Deployment" else (0, 1)
    surge = _share(update.get("maxSurge", default_surge), pods)
    return surge > 0 and math.floor(_share(update.get("maxUnavailable", default_unavailable), pods)) == 0


def _share(amount: object, pods: int) -> float:
    """Return the number of pods for an amount such as `2` or `25%`; a percentage of `pods` is not rounded."""
    text = str(amount)
    return pods * float(text[:-1]) / 100 if text.endswith("%") else float(text)


def _section_and_resource(key: str) -> tuple[str, str]:
    """Return the section (`requests` or `limits`) and the resource that a quota's key limits, or two empty texts."""
    section, _, resource = key.rpartition(".")
    if resource not in _RESOURCES or section not in {"", *_SECTIONS}:
        return "", ""
    return section or "requests", resource


def _bound_of(item: Mapping[str, Any], name: str, resource: str) -> Quantity | None:
    found = (item.get(name) or {}).get(resource)
    return None if found is None else parse_quantity(str(found))


def _amount_of_pod(spec: Mapping[str, Any], section: str, resource: str) -> Quantity | None:
    """Return what a pod requests, or is limited to, in total; None if nothing is stated.

    That is what the pod as a whole states, or else the larger of the sum over its containers and sidecars, and the peak
    during its initialisation, when each init container runs beside the sidecars before it.
    """
    whole = _stated_amount(spec, section, resource)
    if whole is not None:
        return whole
    sidecars = _NONE
    amounts = [_stated_amount(each, section, resource) for each in spec["containers"]]
    peaks = []
    for each in spec.get(_INIT) or ():
        found = _stated_amount(each, section, resource)
        if each.get("restartPolicy") == "Always":
            amounts.append(found)
            sidecars += found or _NONE
        elif found is not None:
            peaks.append(sidecars + found)
    known = [each for each in amounts if each is not None]
    return max([sum(known, _NONE), *peaks]) if known or peaks else None


def _is_stated_as_a_whole(spec: Mapping[str, Any]) -> bool:
    """Return whether a pod states resources for itself, besides those of its containers."""
    whole = spec.get("resources") or {}
    return bool(whole.get("requests") or whole.get("limits"))


def _stated_amount(part: Mapping[str, Any], section: str, resource: str) -> Quantity | None:
    """Return what the resources of a container, or of a pod as a whole, state; None if they do not."""
    found = ((part.get("resources") or {}).get(section) or {}).get(resource)
    return None if found is None else parse_quantity(str(found))
