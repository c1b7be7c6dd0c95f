"""What one file, or several of them together, state about a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.cluster.facts import FactError, autoscaler_of, node_of, ready_addresses, service_of
from adapter.cluster.forms import AutoscalerForm, NodeForm, SliceForm
from adapter.cluster.state import Observed, Unknown
from adapter.cluster.targets import ScaledForm, group_of, scaled_object
from adapter.sources.manifests import GroupKind, group_kind, read_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    import msgspec

    from adapter.cluster.state import Autoscaler, ClusterNode, CountedKind
    from adapter.cluster.targets import ScaledObject, ScaleTarget
    from adapter.sources.manifests import FileObject, Manifest
    from adapter.timing.pace import Pace

_COUNTED: Mapping[GroupKind, CountedKind] = {
    GroupKind("", "Pod"): "pods",
    GroupKind("", "Service"): "services",
    GroupKind("", "Namespace"): "namespaces",
    GroupKind("discovery.k8s.io", "EndpointSlice"): "endpoints",
}
_WHOLE: Mapping[GroupKind, type[msgspec.Struct]] = {
    GroupKind("", "Node"): NodeForm,
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): AutoscalerForm,
    GroupKind("discovery.k8s.io", "EndpointSlice"): SliceForm,
}


class _Forms(Mapping[GroupKind, "type[msgspec.Struct]"]):
    """Of counted kinds only the metadata is read, and any other kind may be one that can be scaled."""

    def __getitem__(self, kind: GroupKind) -> type[msgspec.Struct]:
        if kind in _WHOLE:
            return _WHOLE[kind]
        if kind in _COUNTED:
            raise KeyError(kind)
        return ScaledForm

    def __iter__(self) -> Iterator[GroupKind]:
        return iter(_WHOLE)

    def __len__(self) -> int:
        return len(_WHOLE)


_FORMS = _Forms()


@dataclass(frozen=True, slots=True)
class EndpointSlice:
    """The Service of a slice, and its ready addresses."""

    service: str
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """Objects by namespace (empty for kinds without) and name. One that cannot be used is replaced by the reason."""

    nodes: dict[str, ClusterNode | str] = field(default_factory=dict)
    autoscalers: dict[tuple[str, str], Autoscaler | str] = field(default_factory=dict)
    scaled: dict[tuple[str, str, str, str], ScaledObject | str] = field(default_factory=dict)
    """By API group, kind, namespace and name."""
    slices: dict[tuple[str, str], EndpointSlice] = field(default_factory=dict)
    labels: dict[CountedKind, dict[tuple[str, str], Mapping[str, str]]] = field(default_factory=dict)
    """Of the objects that can be counted; of `endpoints`, those of the EndpointSlices."""

    def target(self, target: ScaleTarget, time: float) -> Observed[ScaledObject | None] | Unknown:
        """Return the size of an object, as it was at a time; None if there is no such object."""
        found = self.scaled.get((group_of(target.api_version), target.kind, target.namespace, target.name))
        return Unknown(found) if isinstance(found, str) else Observed(found, time)

    def update(self, other: Contents) -> None:
        """Add the objects of other contents, which replace those of the same name."""
        self.nodes.update(other.nodes)
        self.autoscalers.update(other.autoscalers)
        self.scaled.update(other.scaled)
        self.slices.update(other.slices)
        for kind, labels in other.labels.items():
            self.labels.setdefault(kind, {}).update(labels)


def contents_of(body: bytes, *, is_json: bool, pace: Pace) -> Contents:
    """Return what a file states. Raises ManifestError."""
    contents = Contents()
    shared: dict[tuple[str, ...], Mapping[str, str]] = {}
    for part in read_objects(body, _FORMS, is_json=is_json, pace=pace):
        for found in part:
            _add(contents, found, shared)
    return contents


def _add(contents: Contents, found: FileObject, shared: dict[tuple[str, ...], Mapping[str, str]]) -> None:
    manifest, name = found.manifest, found.manifest.metadata.name
    kind = group_kind(manifest)
    match found.whole:
        case NodeForm() as form:
            contents.nodes[name] = _node(form)
        case AutoscalerForm() as form:
            form.metadata.namespace = _namespace(manifest)
            contents.autoscalers[_namespace(manifest), name] = _autoscaler(form)
        case ScaledForm() as form:
            form.kind = kind.kind
            contents.scaled[kind.group, kind.kind, _namespace(manifest), name] = _scaled(form)
        case SliceForm() as form:
            contents.slices[_namespace(manifest), name] = EndpointSlice(service_of(form), ready_addresses(form))
    if (counted := _COUNTED.get(kind)) is not None:
        labels: Mapping[str, str] = manifest.metadata.labels or {}
        labels = shared.setdefault((*labels, *labels.values()), labels)
        namespace = "" if counted == "namespaces" else _namespace(manifest)
        contents.labels.setdefault(counted, {})[namespace, name] = labels


def _namespace(manifest: Manifest) -> str:
    """Return the namespace of an object; as with kubectl, `default` where it states none."""
    return manifest.metadata.namespace or "default"


def _node(form: NodeForm) -> ClusterNode | str:
    try:
        return node_of(form)
    except FactError as error:
        return str(error)


def _autoscaler(form: AutoscalerForm) -> Autoscaler | str:
    try:
        return autoscaler_of(form)
    except FactError as error:
        return str(error)


def _scaled(form: ScaledForm) -> ScaledObject | str:
    try:
        return scaled_object(form)
    except FactError as error:
        return str(error)
