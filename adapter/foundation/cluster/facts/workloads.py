"""Turns decoded workloads, budgets, priorities and namespaces into their values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.facts.pod_constraints import annotations_of, decode_part
from adapter.foundation.cluster.facts.requirements import label_selector_of
from adapter.foundation.cluster.facts.scale_targets import ONE_BY_DEFAULT
from adapter.foundation.cluster.facts.scheduling_pods import template_pod
from adapter.foundation.cluster.forms.pods import OwnerForm
from adapter.foundation.cluster.forms.scheduling_objects import TemplateForm
from adapter.foundation.cluster.values.constraints import TaintEffect, Toleration
from adapter.foundation.cluster.values.pods import WORKLOAD_GROUPS
from adapter.foundation.cluster.values.workloads import DisruptionBudget, WorkloadFacts
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.objects.shared_texts import shared_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.forms.scheduling_objects import (
        BudgetForm,
        KindForm,
        PriorityClassForm,
        WorkloadForm,
    )
    from adapter.foundation.cluster.values.state import ClusterPod

_REVISION: Final = "deployment.kubernetes.io/revision"
_LONGEST_REVISION: Final = 19
_NAMED_IMAGES: Final = frozenset({"Deployment", "StatefulSet"})
_API_VERSIONS: Final = {"ReplicationController": "v1", "Job": "batch/v1"}
_OWNING_GROUPS: Final = WORKLOAD_GROUPS | {"", "batch"}
_NODE_TAINTS: Final = "node.kubernetes.io"
_DAEMON_TOLERATIONS: Final = (
    Toleration(f"{_NODE_TAINTS}/not-ready", "Exists", "", TaintEffect.NO_EXECUTE),
    Toleration(f"{_NODE_TAINTS}/unreachable", "Exists", "", TaintEffect.NO_EXECUTE),
    *(
        Toleration(f"{_NODE_TAINTS}/{name}", "Exists", "", TaintEffect.NO_SCHEDULE)
        for name in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ),
)
_NETWORK_UNAVAILABLE: Final = Toleration(f"{_NODE_TAINTS}/network-unavailable", "Exists", "", TaintEffect.NO_SCHEDULE)


@dataclass(frozen=True, slots=True)
class WorkloadRecord:
    """A workload, and references to the other objects from which its value is completed."""

    workload: WorkloadFacts
    priority_class: str = ""
    """Name of its pods' PriorityClass; used if the template does not state the priority itself."""
    is_priority_stated: bool = False
    owner: tuple[str, str, str] | None = None
    """Kind, namespace and name of its controller."""
    revision: int = 0
    """The revision of the Deployment's template that a ReplicaSet has."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name."""
        return self.workload.kind, self.workload.namespace, self.workload.name


@dataclass(frozen=True, slots=True)
class PriorityClassFacts:
    """The part of a PriorityClass that is kept."""

    name: str
    value: int
    is_default: bool


@dataclass(frozen=True, slots=True)
class NamespaceFacts:
    """The labels of a namespace."""

    name: str
    labels: Mapping[str, str]


def workload_of(kind: str, form: WorkloadForm) -> WorkloadRecord:
    """Return the workload; if its template cannot be read, `problem` says why. Never raises."""
    metadata, spec = form.metadata, form.spec
    namespace = metadata.namespace or "default"
    replicas = spec.replicas if spec else None
    if kind == "Job":
        replicas = 1 if spec is None or spec.parallelism is None else spec.parallelism
    elif kind == "DaemonSet":
        replicas = None
    elif replicas is None:
        replicas = 1 if kind in ONE_BY_DEFAULT else None
    bare = WorkloadFacts(kind, namespace, metadata.name, metadata.uid, replicas, None)
    owner = next((one for one in metadata.owners or () if one.controller and _is_of_kubernetes(one)), None)
    record = WorkloadRecord(
        bare,
        owner=(owner.kind, namespace, owner.name) if owner else None,
        revision=_revision(bytes(metadata.annotations)) if kind == "ReplicaSet" else 0,
    )
    try:
        return _with_template(record, bytes(spec.template) if spec else b"")
    except FactError as error:
        return replace(record, workload=replace(bare, problem=str(error)))


def _is_of_kubernetes(owner: OwnerForm) -> bool:
    """Return whether an owner can be a built-in workload, not an object of the same kind in another API group."""
    return owner.api_version.rpartition("/")[0] in _OWNING_GROUPS


def budget_of(form: BudgetForm) -> DisruptionBudget:
    """Return the budget; one whose selector cannot be read forbids every disruption in its namespace. Never raises."""
    namespace, name = form.metadata.namespace or "default", form.metadata.name
    where = f"PodDisruptionBudget {namespace}/{name}"
    try:
        selector = label_selector_of(f"{where}: spec.selector", form.spec.selector if form.spec else None)
    except FactError as error:
        return forbidding_budget(namespace, name, str(error))
    return DisruptionBudget(namespace, name, selector, form.status.disruptions_allowed if form.status else 0)


def forbidding_budget(namespace: str, name: str, problem: str) -> DisruptionBudget:
    """Return a substitute for a budget that cannot be read: it forbids every disruption in its namespace."""
    return DisruptionBudget(namespace, name, EVERYTHING, 0, problem)


def priority_class_of(form: PriorityClassForm) -> PriorityClassFacts:
    """Return the facts of a PriorityClass."""
    return PriorityClassFacts(form.metadata.name, form.value, form.global_default is True)


def namespace_of(form: KindForm) -> NamespaceFacts:
    """Return the labels of a namespace, including the label with its name, which the API server adds to each."""
    name = form.metadata.name
    return NamespaceFacts(name, (form.metadata.labels or {}) | {"kubernetes.io/metadata.name": name})


def _with_template(record: WorkloadRecord, raw: bytes) -> WorkloadRecord:
    workload = record.workload
    where = f"{workload.kind} {workload.namespace}/{workload.name}: spec.template"
    form = decode_part(where, raw, TemplateForm)
    if form is None or form.spec is None:
        raise FactError(f"{where}: it is missing, so what its pods ask for is not known")
    api_version = _API_VERSIONS.get(workload.kind, "apps/v1")
    owner = OwnerForm(api_version, workload.kind, workload.name, workload.uid, controller=True)
    pod = template_pod(where, workload.namespace, form, owner)
    if workload.kind == "DaemonSet":
        pod = _daemon(pod, uses_host_network=form.spec.host_network is True)
    containers = form.spec.containers if workload.kind in _NAMED_IMAGES else None
    images = tuple(shared_text(one.image) for one in containers or ())
    return replace(
        record,
        workload=replace(workload, template=pod, images=images),
        priority_class=form.spec.priority_class_name or "",
        is_priority_stated=form.spec.priority is not None,
    )


def _daemon(pod: ClusterPod, *, uses_host_network: bool) -> ClusterPod:
    """Return the pod with the tolerations that the DaemonSet controller adds (`AddOrUpdateDaemonPodTolerations`)."""
    if pod.facts is None:
        raise AssertionError("templates are read with their facts")
    added = (*_DAEMON_TOLERATIONS, _NETWORK_UNAVAILABLE) if uses_host_network else _DAEMON_TOLERATIONS
    scheduling = pod.facts.scheduling
    tolerations = tuple(dict.fromkeys((*scheduling.tolerations, *added)))
    return replace(pod, facts=replace(pod.facts, scheduling=replace(scheduling, tolerations=tolerations)))


def _revision(annotations: bytes) -> int:
    try:
        text = annotations_of("", annotations).get(_REVISION, "")
    except FactError:
        return 0
    return int(text) if text.isascii() and text.isdigit() and len(text) < _LONGEST_REVISION else 0
