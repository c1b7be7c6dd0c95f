"""Determines whether LimitRanges and ResourceQuotas would forbid pods with changed requests. Pure.

The API server accepts any template: it refuses only the pods of the rollout, which then stalls halfway. The rules are
those of the Kubernetes admission plugins LimitRanger and ResourceQuota, for CPU and memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from adapter.foundation.objects.quantities import Quantity, parse_quantity

_RESOURCES: Final = ("cpu", "memory")
_SECTIONS: Final = ("requests", "limits")
_NONE: Final = Quantity(0)


def limit_range_refusal(containers: Sequence[Mapping[str, Any]], ranges: Iterable[Mapping[str, Any]]) -> str:
    """Return why a LimitRange forbids a pod with these containers; empty if none does. Raises QuantityError."""
    for each in ranges:
        for item in (each.get("spec") or {}).get("limits") or ():
            kind = item.get("type")
            if kind not in {"Container", "Pod"}:
                continue
            named = [(f"container {found.get('name')}", (found,)) for found in containers]
            for what, members in named if kind == "Container" else [("the pod", tuple(containers))]:
                for problem in _problems_of_range(members, item):
                    name = (each.get("metadata") or {}).get("name")
                    return f"{what} would have {problem}, which LimitRange {name} forbids: change it, or min or max"
    return ""


def _problems_of_range(members: Sequence[Mapping[str, Any]], item: Mapping[str, Any]) -> Iterator[str]:
    # A maximum is the default limit of a container that states none.
    defaults = {**(item.get("max") or {}), **(item.get("default") or {})} if item.get("type") == "Container" else {}
    for resource in _RESOURCES:
        request = _sum(members, "requests", resource, {})
        limit = _sum(members, "limits", resource, defaults)
        most, least = _bound(item, "max", resource), _bound(item, "min", resource)
        ratio = _bound(item, "maxLimitRequestRatio", resource)
        for section, amount in (("request", request), ("limit", limit)):
            if amount is not None and most is not None and most < amount:
                yield f"a {section} of {amount} {resource}, more than {most}"
            if amount is not None and least is not None and amount < least:
                yield f"a {section} of {amount} {resource}, less than {least}"
        if request is None or limit is None:
            continue
        if limit < request:
            yield f"a request of {request} {resource}, more than its limit of {limit}"
        if ratio is not None and ratio.nanos * request.nanos < limit.nanos * 10**9:
            yield f"a limit of {limit} {resource} with a request of {request}, more than {ratio} times as much"


def quota_refusal(
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    pods: int,
    quotas: Iterable[Mapping[str, Any]],
    *,
    needs_room_first: bool,
) -> str:
    """Return why a ResourceQuota forbids a change of the containers of `pods` pods; empty if none forbids it.

    `needs_room_first` states whether the rollout creates a new pod before it deletes an old one (see the function of
    this name). Quotas with scopes are ignored, since it is not known here whether they apply to these pods. Raises
    QuantityError.
    """
    for each in quotas:
        spec, status = each.get("spec") or {}, each.get("status") or {}
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue
        for key, hard in (spec.get("hard") or {}).items():
            section, resource = _section_and_resource(key)
            if not resource:
                continue
            old, new = (_sum(those, section, resource, {}) or _NONE for those in (before, after))
            used = parse_quantity(str((status.get("used") or {}).get(key, "0")))
            added = max((new.nanos - old.nanos) * pods, new.nanos if needs_room_first and pods else 0)
            if added > 0 and used.nanos + added > parse_quantity(str(hard)).nanos:
                name = (each.get("metadata") or {}).get("name")
                needed = Quantity(used.nanos + added, new.format)
                return f"its rollout would need {key} of {needed}, but ResourceQuota {name} allows {hard}: raise it"
    return ""


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


def _bound(item: Mapping[str, Any], name: str, resource: str) -> Quantity | None:
    found = (item.get(name) or {}).get(resource)
    return None if found is None else parse_quantity(str(found))


def _sum(
    members: Sequence[Mapping[str, Any]], section: str, resource: str, defaults: Mapping[str, object]
) -> Quantity | None:
    """Return the sum of the amounts of the containers; None if a container has neither an amount nor a default.

    A request defaults to the limit of its container, and a limit to the one in `defaults`.
    """
    total = _NONE
    for each in members:
        resources = each.get("resources") or {}
        found = (resources.get(section) or {}).get(resource)
        if found is None:
            found = (resources.get("limits") or {}).get(resource) if section == "requests" else defaults.get(resource)
        if found is None:
            return None
        total += parse_quantity(str(found))
    return total
