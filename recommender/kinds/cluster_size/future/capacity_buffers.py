"""CapacityBuffers: how many chunks a buffer requests, and how many it should request.

Source of the arithmetic: `pkg/capacitybuffer/translators` of Cluster Autoscaler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.facts.pods import resources_of
from adapter.foundation.cluster.forms.pods import PodSpecForm
from adapter.foundation.cluster.values.state import JsonObject, ObjectKind, Observed, Unknown
from adapter.foundation.objects.decoders import convert
from adapter.foundation.objects.pod_requests import units_of
from adapter.foundation.objects.quantities import QuantityError, parse_quantity
from adapter.foundation.reports.counts import agreeing, count_of
from recommender.kinds.cluster_size.node_groups.fields import section, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod, ClusterState
    from adapter.foundation.cluster.values.workloads import WorkloadFacts
    from recommender.kinds.cluster_size.model.size_settings import BufferSettings

GROUP: Final = "autoscaling.x-k8s.io"


class ChunkError(ValueError):
    """The size of a buffer or of its chunks cannot be known; the message says why and what to do."""


def chunks_asked(
    replicas: int | None,
    percentage: int | None,
    target_replicas: int | None,
    limits: Mapping[str, int] | None,
    chunk: Mapping[str, int],
) -> int:
    """Return how many chunks a buffer requests: the larger number by `replicas` and by percentage, within the limits.

    `target_replicas` is the size to which the percentage applies. `limits` and the requests of a chunk are in the same
    units; a resource that a chunk does not request limits nothing. Raises ChunkError if nothing says how many.
    """
    wanted = [] if replicas is None else [max(0, replicas)]
    if percentage is not None and target_replicas is not None:
        wanted.append(-(-max(0, percentage) * target_replicas // 100))
    fitting = [max(0, amount) // chunk[name] for name, amount in (limits or {}).items() if chunk.get(name, 0) > 0]
    if not wanted and not fitting:
        raise ChunkError("it has neither replicas, nor a percentage of a workload, nor limits: set one of them")
    return min([max(wanted), *fitting] if wanted else fitting)


def chunks_for(pods: Iterable[ClusterPod], chunk: Mapping[str, int]) -> int:
    """Return how many chunks together request at least as much as the pods. Raises ChunkError for an empty chunk."""
    if not any(amount > 0 for amount in chunk.values()):
        raise ChunkError("a chunk of it requests nothing: set requests in its pod template")
    total: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod.resources.requests.items():
            total[name] = total.get(name, 0) + amount
    return max((-(-total.get(name, 0) // amount) for name, amount in chunk.items() if amount > 0), default=0)


def buffer_kinds(stated: BufferSettings) -> frozenset[ObjectKind]:
    """Return the kinds of objects that determine the size of a buffer's chunks."""
    return frozenset(
        {
            ObjectKind(GROUP, "capacitybuffers", "CapacityBuffer", stated.namespace, stated.name),
            ObjectKind("", "podtemplates", "PodTemplate", stated.namespace),
        }
    )


@dataclass(frozen=True, slots=True)
class BufferSize:
    """The size that a CapacityBuffer should have."""

    buffer: BufferSettings
    replicas: int | None
    """The number of chunks; None if it is not known, so nothing is written."""
    problem: str = ""
    detail: str = ""
    """The calculation, in one sentence."""


def buffer_chunks(stated: BufferSettings, cluster: ClusterState, pods: Sequence[ClusterPod]) -> BufferSize:
    """Return the size with which a buffer holds the future pods. Raises ChunkError if that cannot be known."""
    chunk = chunk_of(stated, cluster)
    replicas = chunks_for(pods, chunk)
    buffer = _one("CapacityBuffer", stated.namespace, stated.name, cluster)
    limits = _limits(buffer)
    target = None
    if isinstance(cluster.workloads, Observed):
        workload = _named_workload(buffer, stated.namespace, cluster.workloads.value)
        target = None if workload is None else workload.replicas
    granted = chunks_asked(replicas, whole(buffer, "spec", "percentage"), target, limits, chunk)
    chunks = f"{count_of(replicas, 'chunk')} {agreeing(replicas, 'requests', 'request')}"
    detail = f"{chunks} as much as {count_of(len(pods), 'future pod')}"
    if granted < replicas:
        detail += f"; the limits of CapacityBuffer {stated.namespace}/{stated.name} allow {granted}"
    return BufferSize(stated, replicas, detail=detail)


def _limits(buffer: JsonObject) -> Mapping[str, int]:
    where = f"CapacityBuffer {text(buffer, 'metadata', 'namespace')}/{text(buffer, 'metadata', 'name')}: spec.limits"
    try:
        return {
            name: units_of(name, parse_quantity(str(amount)))
            for name, amount in section(buffer, "spec", "limits").items()
        }
    except QuantityError as error:
        raise ChunkError(f"{where}: {error}") from error


def chunk_of(stated: BufferSettings, cluster: ClusterState) -> Mapping[str, int]:
    """Return the requests of a chunk of a buffer, CPU in millicores. Raises ChunkError if they are not known.

    The requests are those of the pod template that the buffer names, or of a pod of the workload that it names.
    """
    buffer = _one("CapacityBuffer", stated.namespace, stated.name, cluster)
    spec, status = section(buffer, "spec"), section(buffer, "status")
    # The controller turns a workload into a template and names it in the status.
    template = text(spec, "podTemplateRef", "name") or text(status, "podTemplateRef", "name")
    if template:
        return _requests(_one("PodTemplate", stated.namespace, template, cluster))
    known = cluster.workloads
    workload = None if isinstance(known, Unknown) else _named_workload(buffer, stated.namespace, known.value)
    if workload is None or workload.template is None:
        raise ChunkError(
            f"CapacityBuffer {stated.namespace}/{stated.name} names neither a pod template nor a workload that is known"
        )
    return workload.template.resources.requests


def _one(kind: str, namespace: str, name: str, cluster: ClusterState) -> JsonObject:
    for each, listed in cluster.objects.items():
        if each.kind != kind:
            continue
        if isinstance(listed, Unknown):
            raise ChunkError(f"{kind}s are not known: {listed.reason}")
        for one in listed.value:
            if (text(one, "metadata", "namespace"), text(one, "metadata", "name")) == (namespace, name):
                return one
    raise ChunkError(f"there is no {kind} {namespace}/{name}: create it")


def _requests(template: JsonObject) -> Mapping[str, int]:
    where = f"PodTemplate {text(template, 'metadata', 'namespace')}/{text(template, 'metadata', 'name')}"
    try:
        return resources_of(where, convert(section(template, "template", "spec"), PodSpecForm)).requests
    except (msgspec.ValidationError, FactError) as error:
        raise ChunkError(f"{where}: {error}") from error


def _named_workload(buffer: JsonObject, namespace: str, workloads: Iterable[WorkloadFacts]) -> WorkloadFacts | None:
    """Return the workload that a buffer names; None if it names none that is known."""
    reference = section(buffer, "spec", "scalableRef")
    wanted = (text(reference, "kind"), namespace, text(reference, "name"))
    return next((one for one in workloads if (one.kind, one.namespace, one.name) == wanted), None)
