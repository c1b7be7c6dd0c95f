"""Turns decoded pods into values that include everything that restricts where the pods may run.

150,000 pods have some thousand different specs, so each spec is converted once, and all pods that have it share one
`PodScheduling`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from adapter.foundation.cluster.facts.objects import FactError, time_of
from adapter.foundation.cluster.facts.pod_constraints import (
    Labels,
    affinity_of,
    annotations_of,
    decode_part,
    node_selector_of,
    spread_of,
    tolerations_of,
)
from adapter.foundation.cluster.facts.pods import pod_of, resources_of
from adapter.foundation.cluster.facts.volumes import host_ports_of, shared_volumes, volumes_of
from adapter.foundation.cluster.forms.scheduling_objects import TemplateForm, TemplateMeta
from adapter.foundation.cluster.forms.scheduling_pods import NamedForm, SchedulingMeta, SchedulingPodForm
from adapter.foundation.cluster.values.constraints import DEFAULT_SCHEDULER, NO_CONSTRAINTS, HostPort, PodScheduling
from adapter.foundation.cluster.values.state import ENDED_PHASES, ClusterPod, SchedulingFacts
from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from adapter.foundation.objects.pod_requests import PodResources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.cluster.forms.pods import OwnerForm
    from adapter.foundation.cluster.forms.scheduling_pods import PortedContainerForm, SchedulingSpecForm

_SHARED_BYTES: Final = 16 * MEBIBYTE
MOST_CONSTRAINT_BYTES: Final = 32 << 10
"""The largest total size of a pod's labels and scheduling constraints.

Half of this size holds the names of 300 nodes. The API server accepts 1.5 MB, which is 11,500 anti-affinity terms: one
such pod would cost as much as all others.
"""
_FEW_LABELS: Final = 64
_GRACE_SECONDS: Final = 30.0
_AUTOSCALER: Final = "cluster-autoscaler.kubernetes.io"
_MIRROR: Final = "kubernetes.io/config.mirror"
_WANTED: Final = (_AUTOSCALER.encode(), _MIRROR.encode(), b"\\")
"""Annotations without any of these bytes are not needed; a backslash may be part of an escaped key."""


class _SpecKey(NamedTuple):
    """The parts of a spec that restrict where the pod may run, large ones as bytes. Equal keys mean equal values."""

    namespace: str
    pod: str
    labels: Labels
    node_selector: bytes
    affinity: bytes
    spread: bytes
    tolerations: bytes
    volumes: bytes
    gates: bytes
    resource_claims: bytes
    host_ports: tuple[HostPort, ...]
    scheduler: str


def scheduled_pod_of(form: SchedulingPodForm, gpu_annotation: str = "") -> ClusterPod:
    """Return the pod with its facts.

    A bound pod that cannot be read is returned with `facts.problem`, so that its node does not look emptier than it is.
    Raises FactError for any other pod that cannot be read.
    """
    where = f"Pod {form.metadata.namespace or 'default'}/{form.metadata.name}"
    try:
        return pod_of(form, gpu_annotation, _facts(where, form))
    except FactError as error:
        node = form.spec.node if form.spec else None
        if not node or (form.status and form.status.phase in ENDED_PHASES):
            raise
        return _bound_unreadable_pod(where, form, str(error))


def template_pod(where: str, namespace: str, template: TemplateForm, owner: OwnerForm) -> ClusterPod:
    """Return a pod as a template makes it: unbound and nameless. Raises FactError, whose message begins with `where`.

    The claims of ephemeral volumes are left out, since they are created with the pod.
    """
    metadata, spec = template.metadata or TemplateMeta(), template.spec
    form = SchedulingPodForm(
        SchedulingMeta("", namespace, metadata.labels, owners=[owner], annotations=metadata.annotations),
        msgspec.structs.replace(spec, node=None) if spec else None,
    )
    return pod_of(form, "", _facts(where, form), resources_of(where, spec))


def unreadable_bound_pod(namespace: str, name: str, node: str, problem: str) -> ClusterPod:
    """Return a bound pod of which nothing else is known. It uses its whole node."""
    return ClusterPod(
        namespace=namespace,
        name=name,
        uid="",
        node=node,
        labels={},
        controller=None,
        phase="",
        is_terminating=False,
        bound_at=None,
        ended_at=None,
        priority=0,
        resources=PodResources(),
        facts=_unreadable(problem, requests_known=False),
    )


def scheduling_of(
    where: str, namespace: str, pod: str, labels: Mapping[str, str], spec: SchedulingSpecForm
) -> PodScheduling:
    """Return the scheduling constraints in a spec; equal specs share one value. Raises FactError.

    `pod` is the pod's name, from which the claims of ephemeral volumes get their names; if it is empty, these claims
    are left out.
    """
    affinity, spread, volumes = (
        bytes(spec.affinity),
        bytes(spec.spread_constraints),
        shared_volumes(bytes(spec.volumes)),
    )
    has_keys = b"LabelKeys" in affinity or b"LabelKeys" in spread or b"\\" in affinity or b"\\" in spread
    try:
        return _scheduling(
            _SpecKey(
                namespace=namespace if affinity else "",
                pod=pod if b'"ephemeral"' in volumes or b"\\" in volumes else "",
                labels=tuple(sorted(labels.items())) if has_keys else (),
                node_selector=bytes(spec.node_selector),
                affinity=affinity,
                spread=spread,
                tolerations=bytes(spec.tolerations),
                volumes=volumes,
                gates=bytes(spec.scheduling_gates),
                resource_claims=bytes(spec.resource_claims),
                host_ports=host_ports_of(_containers_with_ports(spec), host_network=spec.host_network is True),
                scheduler=spec.scheduler_name or DEFAULT_SCHEDULER,
            )
        )
    except FactError as error:
        raise FactError(f"{where}: {error}") from error


@bounded_cache(_SHARED_BYTES)
def _scheduling(key: _SpecKey) -> PodScheduling:
    terms = affinity_of(key.affinity, key.namespace, key.labels)
    used = volumes_of(key.volumes)
    claims = decode_part("spec.resourceClaims", key.resource_claims, list[NamedForm]) or []
    made = PodScheduling(
        node_selector=node_selector_of(key.node_selector),
        node_terms=terms.node_terms,
        affinity=terms.pods,
        anti_affinity=terms.anti,
        spread=spread_of(key.spread, key.labels),
        tolerations=tolerations_of(key.tolerations),
        host_ports=key.host_ports,
        claims=(*used.claims, *(f"{key.pod}-{volume}" for volume in used.ephemeral if key.pod)),
        inline_volumes=used.inline,
        local_volumes=used.local,
        scheduler_name=key.scheduler,
        is_gated=bool(decode_part("spec.schedulingGates", key.gates, list[NamedForm])),
        resource_claims=tuple(claim.name for claim in claims),
    )
    return NO_CONSTRAINTS if made == NO_CONSTRAINTS else made


def _containers_with_ports(spec: SchedulingSpecForm) -> Iterator[PortedContainerForm]:
    """Yield the containers whose ports the scheduler counts: all but ordinary init containers, which end."""
    yield from spec.containers or ()
    for container in spec.init_containers or ():
        if container.restart_policy == "Always":
            yield container


def _facts(where: str, form: SchedulingPodForm) -> SchedulingFacts:
    metadata, spec = form.metadata, form.spec
    if spec is None or not spec.containers:
        raise FactError(f"{where}: spec.containers is missing: a pod has at least one container")
    _check_size(where, metadata.labels or {}, spec)
    namespace = metadata.namespace or "default"
    grace = metadata.deletion_grace if metadata.deleted is not None else None
    if grace is None:
        grace = _GRACE_SECONDS if spec.termination_grace is None else spec.termination_grace
    return SchedulingFacts(
        scheduling=scheduling_of(where, namespace, metadata.name, metadata.labels or {}, spec),
        annotations=kept_annotations(where, bytes(metadata.annotations)),
        created=time_of(f"{where}: metadata.creationTimestamp", metadata.created) if metadata.created else None,
        deleted=time_of(f"{where}: metadata.deletionTimestamp", metadata.deleted) if metadata.deleted else None,
        grace_seconds=grace,
        restart_policy=spec.restart_policy or "Always",
        nominated_node=(form.status.nominated_node if form.status else None) or "",
        owner_problem=owner_problem(metadata.owners or []),
    )


def _check_size(where: str, labels: Mapping[str, str], spec: SchedulingSpecForm) -> None:
    """Raise FactError for a pod whose constraints would take too long to evaluate."""
    parts = (spec.affinity, spec.spread_constraints, spec.tolerations, spec.node_selector)
    size = sum([len(memoryview(part)) for part in parts]) + _size_of(labels)
    if size > MOST_CONSTRAINT_BYTES:
        raise FactError(
            f"{where}: its labels, affinity, topologySpreadConstraints, tolerations and nodeSelector take {size} "
            f"bytes, and at most {MOST_CONSTRAINT_BYTES} are evaluated: write fewer terms, values and labels"
        )


def _size_of(labels: Mapping[str, str]) -> int:
    """Return the number of bytes of labels; 0 for a few labels, whose size the API server limits."""
    if len(labels) <= _FEW_LABELS:
        return 0
    return sum(len(key) + len(value) for key, value in labels.items())


def kept_annotations(where: str, raw: bytes) -> Mapping[str, str]:
    """Return the annotations of Cluster Autoscaler and of mirror pods. Raises FactError."""
    if not any(wanted in raw for wanted in _WANTED):
        return _shared_annotations(())
    found = annotations_of(where, raw)
    kept = ((key, value) for key, value in found.items() if key == _MIRROR or _is_autoscalers(key))
    return _shared_annotations(tuple(sorted(kept)))


def owner_problem(owners: list[OwnerForm]) -> str:
    """Return why the controller of a pod cannot be used; empty if nothing is wrong."""
    controllers = [owner for owner in owners if owner.controller]
    if len(controllers) > 1:
        named = " and ".join(f"{owner.kind} {owner.name}" for owner in controllers)
        return f"metadata.ownerReferences names {len(controllers)} controllers, {named}: an object can have one"
    if controllers and not (controllers[0].kind and controllers[0].name):
        return "metadata.ownerReferences has a controller without kind or name"
    return ""


def _is_autoscalers(key: str) -> bool:
    return key.partition("/")[0].endswith(_AUTOSCALER)


@bounded_cache(_SHARED_BYTES)
def _shared_annotations(pairs: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(pairs)


def _unreadable(problem: str, *, requests_known: bool) -> SchedulingFacts:
    return SchedulingFacts(
        scheduling=NO_CONSTRAINTS,
        annotations=_shared_annotations(()),
        created=None,
        deleted=None,
        grace_seconds=_GRACE_SECONDS,
        restart_policy="Always",
        problem=problem,
        are_requests_known=requests_known,
    )


def _bound_unreadable_pod(where: str, form: SchedulingPodForm, problem: str) -> ClusterPod:
    """Return a stand-in for a bound pod that cannot be read, with its requests if these are readable."""
    spec = form.spec
    try:
        resources, known = resources_of(where, spec, form.status), bool(spec and spec.containers)
    except FactError:
        resources, known = PodResources(), False
    labels = form.metadata.labels or {}
    few = labels if _size_of(labels) <= MOST_CONSTRAINT_BYTES else {}
    bare = msgspec.structs.replace(
        form,
        metadata=msgspec.structs.replace(form.metadata, created=None, annotations=msgspec.Raw(), labels=few),
        spec=msgspec.structs.replace(spec, containers=None, init_containers=None, overhead=None, resources=None)
        if spec
        else None,
        status=msgspec.structs.replace(form.status, conditions=None, containers=None) if form.status else None,
    )
    return pod_of(bare, "", _unreadable(problem, requests_known=known), resources)
