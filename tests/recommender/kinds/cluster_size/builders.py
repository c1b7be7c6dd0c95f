"""Nodes and pods for tests of cluster sizes, described in the terms of their objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, NO_CONSTRAINTS, PodScheduling
from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod, ControllerReference, SchedulingFacts, Taint
from adapter.foundation.objects.pod_requests import PodResources, units_of
from adapter.foundation.objects.quantities import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

READY: Final = {"Ready": "True"}


def node(
    name: str,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
    extended: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    conditions: Mapping[str, str] = READY,
    annotations: Mapping[str, str] | None = None,
    unschedulable: bool = False,
    created: float | None = 0.0,
    provider_id: str = "",
    is_terminating: bool = False,
) -> ClusterNode:
    """Return a node; a taint is `KEY=VALUE:EFFECT` or `KEY:EFFECT`, and `extended` are further resources.

    Its hostname is its name unless `labels` state another. `allocatable` overrides the default, which is the capacity.
    """
    capacity = {"cpu": cpu, "memory": memory, "pods": str(pods)} | dict(extended or {})
    return ClusterNode(
        name=name,
        labels={HOSTNAME_LABEL: name} | dict(labels or {}),
        taints=tuple(map(taint, taints)),
        unschedulable=unschedulable,
        conditions=conditions,
        created=created,
        capacity={key: parse_quantity(text) for key, text in capacity.items()},
        allocatable={key: parse_quantity(text) for key, text in (capacity | dict(allocatable or {})).items()},
        annotations=annotations or {},
        provider_id=provider_id,
        is_terminating=is_terminating,
    )


def taint(text: str) -> Taint:
    """Return the taint that is written as `KEY=VALUE:EFFECT` or `KEY:EFFECT`."""
    key_and_value, _, effect = text.rpartition(":")
    key, _, value = key_and_value.partition("=")
    return Taint(key, value, effect)


def controller(name: str, kind: str = "ReplicaSet", api_version: str = "apps/v1") -> ControllerReference:
    """Return a controller whose UID follows from its kind and name."""
    return ControllerReference(api_version, kind, name, f"uid-of-{kind}-{name}")


def pod(
    name: str,
    cpu: str = "100m",
    memory: str = "128Mi",
    *,
    node: str = "",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    controller: str | ControllerReference | None = None,
    scheduling: PodScheduling = NO_CONSTRAINTS,
    extended: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    priority: int = 0,
    phase: str = "",
    created: float | None = 0.0,
    deleted: float | None = None,
    grace_seconds: float = 30.0,
    restart_policy: str = "Always",
    owner_problem: str = "",
) -> ClusterPod:
    """Return a pod; unless stated otherwise, one without a node is pending, and the scheduler has found no node for it.

    A text as controller is the name of a ReplicaSet. An empty amount of CPU or memory asks for none.
    """
    asked = {key: text for key, text in {"cpu": cpu, "memory": memory, **(extended or {})}.items() if text}
    requests = {key: units_of(key, parse_quantity(text)) for key, text in asked.items()}
    return ClusterPod(
        namespace=namespace,
        name=name,
        uid=f"uid-of-{namespace}-{name}",
        node=node,
        labels=labels or {},
        controller=_owner(controller),
        phase=phase or ("Running" if node else "Pending"),
        is_terminating=deleted is not None,
        bound_at=created if node else None,
        ended_at=None,
        priority=priority,
        resources=PodResources(requests=requests, non_zero_requests=requests),
        facts=SchedulingFacts(
            scheduling=scheduling,
            annotations=annotations or {},
            created=created,
            deleted=deleted,
            grace_seconds=grace_seconds,
            restart_policy=restart_policy,
            owner_problem=owner_problem,
        ),
    )


def _owner(named: str | ControllerReference | None) -> ControllerReference | None:
    return controller(named) if isinstance(named, str) else named
