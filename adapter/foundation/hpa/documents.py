"""Turns HPAs and pods, as the API server returns them, into the form that the arithmetic needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from adapter.foundation.hpa.pods import Pod, PodPhase, Readiness
from adapter.foundation.hpa.rules import (
    DEFAULT_SCALE_DOWN,
    DEFAULT_SCALE_UP,
    Behaviour,
    PolicyType,
    ScalingPolicy,
    ScalingRules,
    SelectPolicy,
)
from adapter.foundation.hpa.spec import (
    AverageUtilization,
    AverageValue,
    ExternalMetric,
    HPASpec,
    MetricSpec,
    ObjectMetric,
    PodsMetric,
    ResourceMetric,
    Value,
)
from adapter.foundation.objects.pod_requests import (
    CPU,
    AmountText,
    ContainerSpec,
    PodSpecResources,
    has_pod_level_requests,
    pod_resources,
)
from adapter.foundation.objects.quantities import parse_quantity
from adapter.foundation.time.timestamps import seconds_of

_NANO: Final = 1e9
_RESOURCE_KINDS: Final = {"Resource": "resource", "ContainerResource": "containerResource"}


class HpaDocumentError(ValueError):
    """The document is not an HPA that can be evaluated; the message says what is wrong."""


def spec_of(hpa: Mapping[str, Any]) -> HPASpec:
    """Return the spec of an HPA of autoscaling/v2, which the API server has completed. Raises HpaDocumentError."""
    try:
        spec = hpa["spec"]
        behaviour = spec.get("behavior")
        return HPASpec(
            metrics=tuple(_metric(one) for one in spec.get("metrics") or ()),
            min_replicas=spec.get("minReplicas", 1),
            max_replicas=spec["maxReplicas"],
            behaviour=_behaviour(behaviour) if behaviour else None,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise HpaDocumentError(f"the HPA is not in the form of autoscaling/v2: {error!r}") from error
    except (ValueError, OverflowError) as error:
        raise HpaDocumentError(str(error)) from error


def pod_of(pod: Mapping[str, Any]) -> Pod:
    """Return a pod as the controller sees it, with times in Unix seconds."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    ready = next((one for one in status.get("conditions") or () if one["type"] == "Ready"), None)
    return Pod(
        metadata["name"],
        PodPhase(status.get("phase", "Pending")),
        deleted="deletionTimestamp" in metadata,
        started_at=seconds_of(status.get("startTime")),
        readiness=None if ready is None else _readiness(ready),
        requests_milli=dict(_requests(pod.get("spec") or {})),
    )


def milli(quantity: object) -> int:
    """Return a quantity in thousandths. Raises QuantityError, which is a ValueError."""
    return parse_quantity(str(quantity)).milli_value()


def _metric(found: Mapping[str, Any]) -> MetricSpec:
    kind: str = found["type"]
    if kind in _RESOURCE_KINDS:
        source = found[_RESOURCE_KINDS[kind]]
        target = source["target"]
        percent = target.get("averageUtilization")
        goal = AverageValue(milli(target["averageValue"])) if percent is None else AverageUtilization(percent)
        return ResourceMetric(source["name"], goal, source.get("container"))
    if kind not in {"Pods", "Object", "External"}:
        raise HpaDocumentError(f"the HPA has a metric of the type {kind!r}, which autoscaling/v2 does not have")
    source = found[kind.lower()]
    name, target = source["metric"]["name"], source["target"]
    if kind == "Pods":
        return PodsMetric(name, AverageValue(milli(target["averageValue"])))
    average = target.get("averageValue")
    amount = Value(milli(target["value"])) if average is None else AverageValue(milli(average))
    return ExternalMetric(name, amount) if kind == "External" else ObjectMetric(name, amount)


def _behaviour(found: Mapping[str, Any]) -> Behaviour:
    up, down = found.get("scaleUp"), found.get("scaleDown")
    return Behaviour(_rules(up) if up else DEFAULT_SCALE_UP, _rules(down) if down else DEFAULT_SCALE_DOWN)


def _rules(found: Mapping[str, Any]) -> ScalingRules:
    tolerance = found.get("tolerance")
    policies = found.get("policies") or ()
    return ScalingRules(
        tuple(ScalingPolicy(PolicyType(one["type"]), one["value"], one["periodSeconds"]) for one in policies),
        SelectPolicy(found.get("selectPolicy") or SelectPolicy.MAX),
        found.get("stabilizationWindowSeconds"),
        None if tolerance is None else parse_quantity(str(tolerance)).nanos / _NANO,
    )


def _readiness(condition: Mapping[str, Any]) -> Readiness:
    ready = {"True": True, "False": False}.get(condition["status"])
    return Readiness(ready, seconds_of(condition.get("lastTransitionTime")) or 0.0)


def _requests(spec: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the pod's request for each resource, and each container's request under `CONTAINER/RESOURCE`.

    If a container has no request for a resource, the controller refuses to calculate the pod's utilization of it. But
    if the pod as a whole requests anything, the controller counts all resources as the scheduler does.
    """
    sidecars = (one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always")
    containers = [_requests_of(one) for one in (*(spec.get("containers") or ()), *sidecars)]
    for name, amounts in containers:
        for resource, amount in amounts.items():
            yield f"{name}/{resource}", amount
    if has_pod_level_requests(_amounts(spec)):
        yield from _requests_of_whole(spec)
        return
    for resource in dict.fromkeys(key for _, amounts in containers for key in amounts):
        if all(resource in amounts for _, amounts in containers):
            yield resource, sum(amounts[resource] for _, amounts in containers)


def _requests_of_whole(spec: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the requests of a pod with requests of its own, its overhead included."""
    containers, inits = (
        tuple(
            ContainerSpec(one.get("name", ""), _amounts(one), restarts_always=one.get("restartPolicy") == "Always")
            for one in spec.get(key) or ()
        )
        for key in ("containers", "initContainers")
    )
    found = pod_resources(PodSpecResources(containers, inits, spec.get("overhead") or {}, _amounts(spec)))
    for resource, amount in found.requests.items():
        yield resource, amount if resource == CPU else amount * 1000


def _requests_of(found: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    return found.get("name", ""), {resource: milli(amount) for resource, amount in _amounts(found).items()}


def _amounts(found: Mapping[str, Any]) -> Mapping[str, AmountText]:
    """Return the requests of a container or of a pod as a whole, as they are written."""
    return (found.get("resources") or {}).get("requests") or {}
