"""Turns decoded pods into their values. Pods of one controller share their labels, resources and owner."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.cluster.facts.objects import FactError, time_of
from adapter.foundation.cluster.facts.pod_constraints import annotations_of
from adapter.foundation.cluster.facts.resizes import counted_lists, is_infeasible, statuses_of
from adapter.foundation.cluster.values.state import ENDED_PHASES, ClusterPod, ControllerReference, SchedulingFacts
from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from adapter.foundation.objects.pod_requests import (
    ContainerSpec,
    PodResources,
    PodResourcesError,
    PodSpecResources,
    pod_resources,
)
from adapter.foundation.objects.shared_texts import shared_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.facts.resizes import Pairs
    from adapter.foundation.cluster.forms.objects import QuantityText
    from adapter.foundation.cluster.forms.pods import (
        ContainerForm,
        ContainerStatusForm,
        OwnerForm,
        PodForm,
        PodSpecForm,
        PodStatusForm,
    )

_SHARED_BYTES = 16 * MEBIBYTE
"""Memory for each of three caches (labels, resources and owners), whose values pods share."""

_ContainerKey: TypeAlias = "tuple[str, Pairs, Pairs, bool, tuple[Pairs, ...]]"


def pod_of(
    form: PodForm,
    gpu_annotation: str = "",
    facts: SchedulingFacts | None = None,
    resources: PodResources | None = None,
) -> ClusterPod:
    """Return the pod with these facts. Raises FactError for a quantity, time or annotation that cannot be read.

    `resources` are the pod's requests, if they are known already.
    """
    metadata, spec = form.metadata, form.spec
    namespace = metadata.namespace or "default"
    where = f"Pod {namespace}/{metadata.name}"
    node = (spec.node if spec else None) or ""
    phase = (form.status.phase if form.status else None) or ""
    return ClusterPod(
        namespace=shared_text(namespace),
        name=metadata.name,
        uid=metadata.uid,
        node=shared_text(node),
        labels=shared_labels(tuple((metadata.labels or {}).items())),
        controller=controller_of(metadata.owners),
        phase=sys.intern(phase),
        is_terminating=metadata.deleted is not None,
        bound_at=_bound_at(where, form) if node else None,
        ended_at=_ended_at(where, form.status) if form.status and phase in ENDED_PHASES else None,
        priority=(spec.priority if spec else None) or 0,
        resources=resources_of(where, spec, form.status) if resources is None else resources,
        gpu_allocation=(
            annotations_of(where, bytes(metadata.annotations)).get(gpu_annotation, "") if gpu_annotation else ""
        ),
        facts=facts,
    )


def resources_of(where: str, spec: PodSpecForm | None, status: PodStatusForm | None = None) -> PodResources:
    """Return the resources of a pod; equal pods share them. Raises FactError, which begins with `where`."""
    if spec is None:
        return PodResources()
    whole = spec.resources
    containers = tuple(map(_container_key, spec.containers or ()))
    inits = tuple(map(_container_key, spec.init_containers or ()))
    requests = _pairs(whole.requests if whole else None)
    statuses, infeasible = statuses_of(status), is_infeasible(status)
    counted = counted_lists(requests, status, infeasible=infeasible) if requests else ()
    if statuses:
        containers = tuple([_key_during_resize(key, statuses, infeasible=infeasible) for key in containers])
        inits = tuple([_key_during_resize(key, statuses, infeasible=infeasible) if key[3] else key for key in inits])
    try:
        return _shared_resources(
            containers,
            inits,
            _pairs(spec.overhead),
            requests,
            _pairs(whole.limits if whole else None),
            counted,
        )
    except PodResourcesError as error:
        raise FactError(f"{where}: {error}") from error


def _container_key(form: ContainerForm) -> _ContainerKey:
    resources = form.resources
    if resources is None:
        return form.name, (), (), form.restart_policy == "Always", ()
    return form.name, _pairs(resources.requests), _pairs(resources.limits), form.restart_policy == "Always", ()


def _key_during_resize(
    key: _ContainerKey, statuses: Mapping[str, ContainerStatusForm], *, infeasible: bool
) -> _ContainerKey:
    """Return the key with the lists of amounts that count while a resize in place of the container is not done."""
    name, requests, limits, restarts_always, _ = key
    counted = counted_lists(requests, statuses.get(name), infeasible=infeasible)
    return (name, requests, limits, restarts_always, counted) if counted else key


def _pairs(texts: Mapping[str, QuantityText] | None) -> Pairs:
    return tuple(texts.items()) if texts else ()


@bounded_cache(_SHARED_BYTES)
def _shared_resources(
    containers: tuple[_ContainerKey, ...],
    inits: tuple[_ContainerKey, ...],
    overhead: Pairs,
    requests: Pairs,
    limits: Pairs,
    counted: tuple[Pairs, ...],
) -> PodResources:
    return pod_resources(
        PodSpecResources(
            tuple(map(_container_spec, containers)),
            tuple(map(_container_spec, inits)),
            dict(overhead),
            dict(requests),
            dict(limits),
            tuple(map(dict, counted)),
        ),
        # Pods of the API server have these requests already; templates and pods that somebody has written do not.
        is_admitted=False,
    )


def _container_spec(key: _ContainerKey) -> ContainerSpec:
    name, requests, limits, restarts_always, counted = key
    return ContainerSpec(name, dict(requests), dict(limits), restarts_always, tuple(map(dict, counted)))


@bounded_cache(_SHARED_BYTES)
def shared_labels(pairs: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Return the labels as a mapping; equal labels yield the same object."""
    return {shared_text(key): shared_text(value) for key, value in pairs}


def controller_of(owners: list[OwnerForm] | None) -> ControllerReference | None:
    """Return the owner that controls an object; None if there is none."""
    for owner in owners or ():
        if owner.controller:
            return _shared_controller(owner.api_version, owner.kind, owner.name, owner.uid)
    return None


@bounded_cache(_SHARED_BYTES)
def _shared_controller(api_version: str, kind: str, name: str, uid: str) -> ControllerReference:
    return ControllerReference(sys.intern(api_version), sys.intern(kind), name, uid)


def _bound_at(where: str, form: PodForm) -> float | None:
    for condition in (form.status.conditions or ()) if form.status else ():
        if condition.type == "PodScheduled" and condition.status == "True" and condition.changed:
            return time_of(f"{where}: status.conditions[PodScheduled].lastTransitionTime", condition.changed)
    created = form.metadata.created
    return time_of(f"{where}: metadata.creationTimestamp", created) if created else None


def _ended_at(where: str, status: PodStatusForm) -> float | None:
    times = [
        time_of(f"{where}: status.containerStatuses.state.terminated.finishedAt", one.state.terminated.finished)
        for one in status.containers or ()
        if one.state and one.state.terminated and one.state.terminated.finished
    ]
    return max(times, default=None)
