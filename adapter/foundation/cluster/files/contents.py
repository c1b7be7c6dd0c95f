"""The contents of one file, or of several files together, that describe a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from adapter.foundation.cluster.facts.autoscalers import autoscaler_of
from adapter.foundation.cluster.facts.objects import FactError, node_of, ready_addresses, service_of
from adapter.foundation.cluster.facts.pod_selectors import SELECTING_KINDS, pod_selector_of
from adapter.foundation.cluster.facts.pods import pod_of
from adapter.foundation.cluster.facts.scale_targets import ScaledForm, group_of, scaled_object
from adapter.foundation.cluster.facts.scheduling_pods import scheduled_pod_of
from adapter.foundation.cluster.facts.sized_nodes import sized_node_of
from adapter.foundation.cluster.files.scheduling_contents import (
    NODE,
    POD,
    ContentForm,
    SchedulingContents,
    bound_pod,
    duplicate,
    scheduling_forms,
    version_problem,
)
from adapter.foundation.cluster.forms.autoscalers import AutoscalerForm
from adapter.foundation.cluster.forms.objects import NodeForm, SliceForm
from adapter.foundation.cluster.forms.pods import PodForm, SelectingForm, SelectingMeta, SelectingSpec
from adapter.foundation.cluster.forms.scheduling_objects import SizedNodeForm
from adapter.foundation.cluster.forms.scheduling_pods import SchedulingPodForm
from adapter.foundation.cluster.values.state import ClusterNeeds, Observed, Unknown
from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.manifest_forms import FileObject, GroupKind, Manifest, UnreadableObject, group_kind
from adapter.foundation.sources.manifests import read_objects
from adapter.foundation.time.pace import UNPACED, Pace

if TYPE_CHECKING:
    from adapter.foundation.cluster.facts.scale_targets import ScaledObject, ScaleTarget
    from adapter.foundation.cluster.values.state import (
        Autoscaler,
        ClusterNode,
        ClusterPod,
        CountedKind,
        ObjectKind,
        PodSelector,
    )
    from adapter.foundation.sources.kubernetes.lists.items import Document

F = TypeVar("F")
V = TypeVar("V")

_COUNTED: Mapping[GroupKind, CountedKind] = {
    GroupKind("", "Pod"): "pods",
    GroupKind("", "Service"): "services",
    GroupKind("", "Namespace"): "namespaces",
    GroupKind("discovery.k8s.io", "EndpointSlice"): "endpoints",
}
_SELECTING: Mapping[GroupKind, str] = {GroupKind(group, kind): kind for kind, group in SELECTING_KINDS.items()}
_WHOLE: Mapping[GroupKind, type[msgspec.Struct]] = {
    GroupKind("", "Node"): NodeForm,
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): AutoscalerForm,
    GroupKind("discovery.k8s.io", "EndpointSlice"): SliceForm,
}


_META = decoder_of(SelectingMeta)
_SPEC: msgspec.json.Decoder[SelectingSpec | None] = decoder_of(SelectingSpec | None)


class _Forms(Mapping[GroupKind, "type[msgspec.Struct]"]):
    """The form in which each kind is decoded. Of counted kinds, only the metadata is read unless more is needed.

    Objects of all other kinds may be scalable, so they keep their spec; controllers are decoded like these.
    """

    def __init__(self, needs: ClusterNeeds) -> None:
        self._whole = dict(_WHOLE)
        if needs.pods:
            self._whole[POD] = PodForm
        if needs.pod_selectors:
            self._whole[GroupKind("", "Service")] = SelectingForm
        self._whole |= scheduling_forms(needs)

    def __getitem__(self, kind: GroupKind) -> type[msgspec.Struct]:
        if kind in self._whole:
            return self._whole[kind]
        if kind in _COUNTED:
            raise KeyError(kind)
        return ScaledForm

    def __iter__(self) -> Iterator[GroupKind]:
        return iter(self._whole)

    def __len__(self) -> int:
        return len(self._whole)


@dataclass(frozen=True, slots=True)
class EndpointSlice:
    """The Service of a slice, and its ready addresses."""

    service: str
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """Objects by namespace (empty if cluster-scoped) and name. Instead of an unusable object, the reason is stored."""

    nodes: dict[str, ClusterNode | str] = field(default_factory=dict)
    autoscalers: dict[tuple[str, str], Autoscaler | str] = field(default_factory=dict)
    scaled: dict[tuple[str, str, str, str], ScaledObject | str] = field(default_factory=dict)
    """The sizes of objects, by API group, kind, namespace and name."""
    slices: dict[tuple[str, str], EndpointSlice] = field(default_factory=dict)
    labels: dict[CountedKind, dict[tuple[str, str], Mapping[str, str]]] = field(default_factory=dict)
    """Labels of the objects that can be counted; for `endpoints`, those of the EndpointSlices."""
    pods: dict[tuple[str, str], ClusterPod | str] = field(default_factory=dict)
    """All pods, including those that have ended. Empty unless pods were needed when the files were read."""
    pod_selectors: dict[tuple[str, str, str], PodSelector | str] = field(default_factory=dict)
    """The selectors by namespace, name and kind. Empty unless pods were needed when the files were read."""
    scheduling: SchedulingContents = field(default_factory=SchedulingContents)
    """The objects for scheduling. Empty unless scheduling or whole objects were needed when the files were read."""

    def target(self, target: ScaleTarget, time: float) -> Observed[ScaledObject | None] | Unknown:
        """Return the size of an object, as it was at a time; None if there is no such object."""
        found = self.scaled.get((group_of(target.api_version), target.kind, target.namespace, target.name))
        return Unknown(found) if isinstance(found, str) else Observed(found, time)

    def update(self, other: Contents) -> None:
        """Add the objects of other contents; they replace objects of the same name."""
        self.scheduling.left_out += [duplicate("Node", "", name) for name in other.nodes.keys() & self.nodes.keys()]
        self.scheduling.left_out += [duplicate("Pod", *place) for place in other.pods.keys() & self.pods.keys()]
        self.scheduling.update(other.scheduling)
        self.nodes.update(other.nodes)
        self.autoscalers.update(other.autoscalers)
        self.scaled.update(other.scaled)
        self.slices.update(other.slices)
        self.pods.update(other.pods)
        self.pod_selectors.update(other.pod_selectors)
        for kind, labels in other.labels.items():
            self.labels.setdefault(kind, {}).update(labels)


def contents_of(body: Document, *, is_json: bool, pace: Pace, needs: ClusterNeeds) -> Contents:
    """Return the content of a file, with pods and the objects that select them only if needed. Raises ManifestError.

    Where scheduling is needed, an object that cannot be decoded is left out and named.
    """
    contents = Contents()
    forms = _Forms(needs)
    shared: dict[tuple[str, ...], Mapping[str, str]] = {}
    leave_out = partial(_leave_out, contents) if needs.scheduling else None
    for part in read_objects(body, forms, is_json=is_json, pace=pace, leave_out=leave_out):
        for found in part:
            if needs.scheduling:
                _name_duplicate(contents, found.manifest)
            _add(contents, found, shared)
            _add_placement(contents, found, needs)
            contents.scheduling.take(found, needs)
    return contents


def whole_objects_in(body: Document, *, is_json: bool, kinds: frozenset[ObjectKind]) -> Contents:
    """Return only the objects of the given kinds; unreadable objects are skipped. Raises ManifestError."""
    contents, needs = Contents(), ClusterNeeds(objects=kinds)
    forms = {GroupKind(kind.group, kind.kind): ContentForm for kind in kinds}
    for part in read_objects(body, forms, is_json=is_json, pace=UNPACED, leave_out=_pass_over):
        for found in part:
            contents.scheduling.take(found, needs)
    return contents


def _pass_over(found: UnreadableObject) -> None:
    """Skip an unreadable object."""


def _leave_out(contents: Contents, found: UnreadableObject) -> None:
    kind, name = group_kind(found.manifest), found.manifest.metadata.name
    if name:
        _name_duplicate(contents, found.manifest)
    instead = contents.scheduling.take_unreadable(found)
    if instead is None:
        return
    if kind == POD:
        contents.pods[_namespace(found.manifest), name] = instead
    elif isinstance(instead, str):
        contents.nodes[name] = instead


def _name_duplicate(contents: Contents, manifest: Manifest) -> None:
    kind, name = group_kind(manifest), manifest.metadata.name
    if (kind == POD and (_namespace(manifest), name) in contents.pods) or (kind == NODE and name in contents.nodes):
        contents.scheduling.note_duplicate(manifest)


def _add(contents: Contents, found: FileObject, shared: dict[tuple[str, ...], Mapping[str, str]]) -> None:
    manifest, name = found.manifest, found.manifest.metadata.name
    kind = group_kind(manifest)
    match found.whole:
        case SizedNodeForm() as form:
            contents.nodes[name] = version_problem(manifest) or _or_problem(sized_node_of, form)
        case NodeForm() as form:
            contents.nodes[name] = _or_problem(node_of, form)
        case AutoscalerForm() as form:
            form.metadata.namespace = _namespace(manifest)
            contents.autoscalers[_namespace(manifest), name] = _or_problem(autoscaler_of, form)
        case ScaledForm() as form:
            form.kind = kind.kind
            contents.scaled[kind.group, kind.kind, _namespace(manifest), name] = _or_problem(scaled_object, form)
        case SliceForm() as form:
            contents.slices[_namespace(manifest), name] = EndpointSlice(service_of(form), ready_addresses(form))
    if (counted := _COUNTED.get(kind)) is not None:
        labels: Mapping[str, str] = manifest.metadata.labels or {}
        labels = shared.setdefault((*labels, *labels.values()), labels)
        namespace = "" if counted == "namespaces" else _namespace(manifest)
        contents.labels.setdefault(counted, {})[namespace, name] = labels


def _add_placement(contents: Contents, found: FileObject, needs: ClusterNeeds) -> None:
    place = _namespace(found.manifest), found.manifest.metadata.name
    if isinstance(found.whole, SchedulingPodForm):
        contents.pods[place] = _scheduled_pod(found, found.whole, needs.gpu_annotation)
    elif isinstance(found.whole, PodForm):
        contents.pods[place] = _or_problem(partial(pod_of, gpu_annotation=needs.gpu_annotation), found.whole)
    kind = _SELECTING.get(group_kind(found.manifest)) if needs.pod_selectors else None
    if kind is None:
        return
    selector = _or_problem(partial(_pod_selector, kind, found.manifest), found.whole)
    if selector is not None:
        contents.pod_selectors[*place, kind] = selector


def _scheduled_pod(found: FileObject, form: SchedulingPodForm, gpu_annotation: str) -> ClusterPod | str:
    if problem := version_problem(found.manifest):
        return bound_pod(found.manifest, found.content, problem) or problem
    return _or_problem(partial(scheduled_pod_of, gpu_annotation=gpu_annotation), form)


def _pod_selector(kind: str, manifest: Manifest, whole: msgspec.Struct | None) -> PodSelector | None:
    if isinstance(whole, SelectingForm):
        return pod_selector_of(kind, whole)
    if not isinstance(whole, ScaledForm):
        return None
    try:
        metadata = _META.decode(whole.metadata)
        spec = _SPEC.decode(whole.spec)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FactError(f"{kind} {manifest.metadata.name}: the selector cannot be read: {error}") from error
    return pod_selector_of(kind, SelectingForm(metadata, spec))


def _or_problem(convert: Callable[[F], V], form: F) -> V | str:
    """Return the value of an object, or the reason why there is none."""
    try:
        return convert(form)
    except FactError as error:
        return str(error)


def _namespace(manifest: Manifest) -> str:
    """Return the namespace of an object; as with kubectl, `default` where it states none."""
    return manifest.metadata.namespace or "default"
