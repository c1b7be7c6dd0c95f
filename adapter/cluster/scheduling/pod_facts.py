"""From decoded pods to their values with all that restricts their place.

150,000 pods have some thousand different specs, so a spec is converted once for all pods that have it: they share one
`PodScheduling`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from adapter.cluster.facts import FactError
from adapter.cluster.pods.facts import pod_of, resources_of, time_of
from adapter.cluster.scheduling.constraints import DEFAULT_SCHEDULER, NO_CONSTRAINTS, PodScheduling
from adapter.cluster.scheduling.forms import NamedForm, SchedulingMeta, SchedulingPodForm
from adapter.cluster.scheduling.object_forms import TemplateMeta
from adapter.cluster.scheduling.pod_constraints import (
    affinity_of,
    decoded,
    node_selector_of,
    spread_of,
    tolerations_of,
)
from adapter.cluster.scheduling.volumes import host_ports_of, shared_volumes, volumes_of
from adapter.cluster.state import ENDED_PHASES, ClusterPod, SchedulingFacts
from adapter.objects.pod_requests import PodResources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.cluster.pods.forms import OwnerForm
    from adapter.cluster.scheduling.constraints import HostPort
    from adapter.cluster.scheduling.forms import PortedContainerForm, SchedulingSpecForm
    from adapter.cluster.scheduling.object_forms import TemplateForm
    from adapter.cluster.scheduling.pod_constraints import Labels

_SHARED: Final = 1 << 12
_GRACE_SECONDS: Final = 30.0
_AUTOSCALER: Final = "cluster-autoscaler.kubernetes.io"
_MIRROR: Final = "kubernetes.io/config.mirror"
_WANTED: Final = (_AUTOSCALER.encode(), _MIRROR.encode(), b"\\")
"""What the bytes of annotations contain if one of them may be wanted; a backslash may be part of an escaped key."""


class _SpecKey(NamedTuple):
    """The parts of a spec that decide about the place, as bytes where they are large. Equal keys mean equal values."""

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
        return _kept(where, form, str(error))


def template_pod(where: str, namespace: str, template: TemplateForm, owner: OwnerForm) -> ClusterPod:
    """Return a pod as a template makes it: unbound and without a name. Raises FactError, which begins with `where`.

    The claims of ephemeral volumes are not among its claims, as they are made with the pod.
    """
    metadata, spec = template.metadata or TemplateMeta(), template.spec
    form = SchedulingPodForm(
        SchedulingMeta("", namespace, metadata.labels, owners=[owner], annotations=metadata.annotations),
        msgspec.structs.replace(spec, node=None) if spec else None,
    )
    return pod_of(form, "", _facts(where, form), resources_of(where, spec))


def unreadable_bound_pod(namespace: str, name: str, node: str, problem: str) -> ClusterPod:
    """Return a bound pod of which nothing else is known. It takes its node as a whole."""
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
    """Return what a spec states about the pod's place; equal specs share it. Raises FactError.

    `pod` is its name, of which the claims of ephemeral volumes have theirs; without one these claims are left out.
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
                host_ports=host_ports_of(_running(spec), host_network=spec.host_network is True),
                scheduler=spec.scheduler_name or DEFAULT_SCHEDULER,
            )
        )
    except FactError as error:
        raise FactError(f"{where}: {error}") from error


@lru_cache(maxsize=_SHARED)
def _scheduling(key: _SpecKey) -> PodScheduling:
    terms = affinity_of(key.affinity, key.namespace, key.labels)
    used = volumes_of(key.volumes)
    claims = decoded("spec.resourceClaims", key.resource_claims, list[NamedForm]) or []
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
        is_gated=bool(decoded("spec.schedulingGates", key.gates, list[NamedForm])),
        resource_claims=tuple(claim.name for claim in claims),
    )
    return NO_CONSTRAINTS if made == NO_CONSTRAINTS else made


def _running(spec: SchedulingSpecForm) -> Iterator[PortedContainerForm]:
    """Yield the containers whose ports the scheduler counts: all but init containers that end."""
    yield from spec.containers or ()
    for container in spec.init_containers or ():
        if container.restart_policy == "Always":
            yield container


def _facts(where: str, form: SchedulingPodForm) -> SchedulingFacts:
    metadata, spec = form.metadata, form.spec
    if spec is None or not spec.containers:
        raise FactError(f"{where}: spec.containers is missing: a pod has at least one container")
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
        owner_problem=owner_problem(metadata.owners or []),
    )


def kept_annotations(where: str, raw: bytes) -> Mapping[str, str]:
    """Return the annotations of Cluster Autoscaler and of mirror pods. Raises FactError."""
    if not any(wanted in raw for wanted in _WANTED):
        return _shared_annotations(())
    try:
        found = decoded("metadata.annotations", raw, dict[str, str]) or {}
    except FactError as error:
        raise FactError(f"{where}: {error}") from error
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


@lru_cache(maxsize=_SHARED)
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


def _kept(where: str, form: SchedulingPodForm, problem: str) -> ClusterPod:
    """Return a bound pod that cannot be read, with its requests if these can."""
    spec = form.spec
    try:
        resources, known = resources_of(where, spec), bool(spec and spec.containers)
    except FactError:
        resources, known = PodResources(), False
    bare = msgspec.structs.replace(
        form,
        metadata=msgspec.structs.replace(form.metadata, created=None, annotations=msgspec.Raw()),
        spec=msgspec.structs.replace(spec, containers=None, init_containers=None, overhead=None, resources=None)
        if spec
        else None,
        status=msgspec.structs.replace(form.status, conditions=None, containers=None) if form.status else None,
    )
    return pod_of(bare, "", _unreadable(problem, requests_known=known), resources)
