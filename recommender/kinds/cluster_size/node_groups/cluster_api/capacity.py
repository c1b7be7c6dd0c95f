"""Scale from zero: the expected node of a group that has none.

Sources: the annotations `capacity.cluster-autoscaler.kubernetes.io/…` of the group, then `status.capacity` and
`status.nodeInfo` of its infrastructure template (Cluster API's proposal "opt-in autoscaling from zero").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Taint
from adapter.foundation.objects.quantities import Quantity, QuantityError, parse_quantity
from recommender.kinds.cluster_size.node_groups.cluster_api.scalables import ScalableError, group_name
from recommender.kinds.cluster_size.node_groups.fields import items, section, text, texts
from recommender.kinds.cluster_size.node_groups.templates import DEFAULT_PODS, PODS, stated_node

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, JsonObject

_PREFIX: Final = "capacity.cluster-autoscaler.kubernetes.io/"
CPU_ANNOTATION: Final = f"{_PREFIX}cpu"
MEMORY_ANNOTATION: Final = f"{_PREFIX}memory"
_DISK: Final = f"{_PREFIX}ephemeral-disk"
_GPU_TYPE: Final = f"{_PREFIX}gpu-type"
_GPU_COUNT: Final = f"{_PREFIX}gpu-count"
_MAX_PODS: Final = f"{_PREFIX}maxPods"
_LABELS: Final = f"{_PREFIX}labels"
_TAINTS: Final = f"{_PREFIX}taints"
_RESOURCES: Final = {CPU_ANNOTATION: "cpu", MEMORY_ANNOTATION: "memory", _DISK: "ephemeral-storage"}
_PROPAGATED_DOMAINS: Final = ("node-role.kubernetes.io", "node-restriction.kubernetes.io", "node.cluster.x-k8s.io")
"""The domains whose labels Cluster API copies from Machines to their nodes, subdomains included."""
_NOTHING: Final = frozenset({"", "0"})
_EFFECTS: Final = frozenset({"NoSchedule", "PreferNoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True, order=True)
class InfrastructureReference:
    """The template from which the machines of a group are made."""

    api_group: str
    kind: str
    namespace: str
    name: str


def infrastructure_of(one: JsonObject) -> InfrastructureReference | None:
    """Return the infrastructure template of a group; None if it names none."""
    reference = section(one, "spec", "template", "spec", "infrastructureRef")
    kind, name = text(reference, "kind"), text(reference, "name")
    # v1beta1 states apiVersion and may name a namespace, v1beta2 has apiGroup alone.
    group = text(reference, "apiGroup") or text(reference, "apiVersion").rpartition("/")[0]
    namespace = text(reference, "namespace") or text(one, "metadata", "namespace")
    return InfrastructureReference(group, kind, namespace, name) if group and kind and name else None


def states_capacity(one: JsonObject) -> bool:
    """Return whether the annotations alone state the capacity of a node of the group."""
    annotations = texts(one, "metadata", "annotations")
    return all(annotations.get(key, "") not in _NOTHING for key in (CPU_ANNOTATION, MEMORY_ANNOTATION))


def node_from_zero(one: JsonObject, infrastructure: JsonObject | None) -> ClusterNode | None:
    """Return a node that the group would create; None if CPU or memory is not stated anywhere.

    Annotations win over the infrastructure template. Raises ScalableError for an annotation that cannot be read.
    """
    annotations = texts(one, "metadata", "annotations")
    template = infrastructure or {}
    capacity = dict(
        _quantities("status.capacity of the infrastructure template", section(template, "status", "capacity"))
    )
    keys = {**_RESOURCES, _MAX_PODS: PODS}
    if annotations.get(_GPU_TYPE):
        keys[_GPU_COUNT] = annotations[_GPU_TYPE]
    # As in Cluster Autoscaler, an empty text or an amount of 0 states nothing, such as what a chart leaves empty.
    stated = {
        resource: _quantity(f"the annotation {key.removeprefix(_PREFIX)}", annotations[key])
        for key, resource in keys.items()
        if annotations.get(key)
    }
    capacity |= {PODS: DEFAULT_PODS} | {resource: amount for resource, amount in stated.items() if amount.nanos}
    if not {"cpu", "memory"} <= capacity.keys():
        return None
    labels = _labels(one, template, annotations.get(_LABELS, ""))
    return stated_node(group_name(one), capacity, labels, _taints(one, annotations.get(_TAINTS, "")))


def _quantities(where: str, stated: Mapping[str, object]) -> Iterator[tuple[str, Quantity]]:
    for resource, amount in stated.items():
        yield resource, _quantity(f"{where} {resource}", str(amount))


def _quantity(where: str, written: str) -> Quantity:
    try:
        return parse_quantity(written)
    except QuantityError as error:
        raise ScalableError(f"{where}: {error}") from error


def _labels(one: JsonObject, template: JsonObject, stated: str) -> dict[str, str]:
    """Return the labels of a new node: those that Cluster API propagates, and those of the annotation."""
    info = section(template, "status", "nodeInfo")
    facts = {
        "kubernetes.io/arch": text(info, "architecture"),
        "kubernetes.io/os": text(info, "operatingSystem"),
    }
    propagated = texts(one, "spec", "template", "metadata", "labels")
    found = {key: value for key, value in facts.items() if value}
    found |= {key: value for key, value in propagated.items() if _is_propagated(key)}
    # As in Cluster Autoscaler, an entry without a value states no label.
    entries = (entry.strip().partition("=") for entry in stated.split(","))
    return found | {key: value for key, equals, value in entries if key and equals}


def _is_propagated(key: str) -> bool:
    domain = key.partition("/")[0]
    return any(domain == known or domain.endswith(f".{known}") for known in _PROPAGATED_DOMAINS)


def _taints(one: JsonObject, stated: str) -> tuple[Taint, ...]:
    """Return the taints of a new node: those of the annotation, and those of the Machine's template (v1beta2)."""
    found: dict[tuple[str, str], Taint] = {}
    for taint in items(one, "spec", "template", "spec", "taints"):
        key, effect = text(taint, "key"), text(taint, "effect")
        found[key, effect] = Taint(key, text(taint, "value"), effect)
    for entry in filter(None, (part.strip() for part in stated.split(","))):
        label, _, effect = entry.rpartition(":")
        key, _, value = label.partition("=")
        if not key or effect not in _EFFECTS:
            raise ScalableError(
                f"the annotation {_TAINTS} has {entry!r}: write KEY=VALUE:EFFECT, such as a=b:NoSchedule"
            )
        found[key, effect] = Taint(key, value, effect)
    return tuple(found.values())
