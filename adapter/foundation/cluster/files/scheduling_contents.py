"""The scheduling objects in files, except nodes and pods, and the objects that cannot be used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

import msgspec

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.facts.scheduling_pods import unreadable_bound_pod
from adapter.foundation.cluster.facts.workloads import WorkloadRecord, forbidding_budget
from adapter.foundation.cluster.forms.scheduling_objects import SizedNodeForm
from adapter.foundation.cluster.forms.scheduling_pods import SchedulingPodForm
from adapter.foundation.cluster.scheduling.kinds import SCHEDULING_KINDS, WORKLOADS, SchedulingValue
from adapter.foundation.cluster.values.state import ClusterNeeds, ClusterPod, JsonObject, LeftOut
from adapter.foundation.cluster.values.workloads import WorkloadFacts
from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.manifest_forms import FileObject, GroupKind, Manifest, UnreadableObject, group_kind

T = TypeVar("T")

Place: TypeAlias = tuple[str, str]
"""Namespace (empty for kinds without namespaces) and name."""

NODE: Final = GroupKind("", "Node")
POD: Final = GroupKind("", "Pod")
_KINDS: Final = {GroupKind(kind.resource.group, kind.name): kind for kind in SCHEDULING_KINDS}
_CLUSTER_SCOPED: Final = frozenset({"Node"} | {kind.name for kind in SCHEDULING_KINDS if not kind.resource.namespaced})
_API_VERSIONS: Final = {NODE: "v1", POD: "v1"} | {kind: each.resource.api_version for kind, each in _KINDS.items()}


class ContentForm(msgspec.Struct, gc=False):
    """An object whose content is decoded later."""


class _Bound(msgspec.Struct, gc=False):
    """The node of a pod; read from pods of which nothing else can be read."""

    node: str = msgspec.field(default="", name="nodeName")


class _BoundPod(msgspec.Struct, gc=False):
    spec: _Bound


_BOUND_POD = decoder_of(_BoundPod)
_OBJECT = decoder_of(dict[str, object])


@dataclass(slots=True)
class SchedulingContents:
    """Objects by kind and place. Instead of an unusable object, the reason is stored."""

    values: dict[str, dict[Place, SchedulingValue | str]] = field(default_factory=dict)
    objects: dict[GroupKind, dict[Place, JsonObject | str]] = field(default_factory=dict)
    """Whole objects, by kind and place."""
    left_out: list[LeftOut] = field(default_factory=list)
    """Objects without a name, and objects that a later one of the same name replaced."""

    def take(self, found: FileObject, needs: ClusterNeeds) -> None:
        """Keep the facts of an object if its kind is needed."""
        manifest = found.manifest
        group = group_kind(manifest)
        if needs.objects and any((kind.group, kind.kind) == group for kind in needs.objects):
            self._set(self.objects.setdefault(group, {}), manifest, _whole(found))
        kind = _KINDS.get(group) if needs.scheduling else None
        if kind is None:
            return
        problem, value = version_problem(manifest), None
        try:
            value = None if problem else kind.convert(decoder_of(kind.form).decode(found.content))
        except FactError as error:
            problem = str(error)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problem = f"{object_text(manifest)}: {error}"
        values = self.values.setdefault(kind.name, {})
        self._set(values, manifest, _stand_in(manifest, problem) if value is None else value)

    def take_unreadable(self, found: UnreadableObject) -> ClusterPod | str | None:
        """Keep a substitute for an object that cannot be decoded; for a node or a pod, return it instead."""
        manifest = found.manifest
        group = group_kind(manifest)
        named = f"{manifest.kind} {manifest.metadata.name}: "
        reason = f"{object_text(manifest)}: {found.reason.removeprefix(named)}"
        if not manifest.metadata.name:
            self.left_out.append(LeftOut(manifest.kind or "object", *place_of(manifest), reason))
        elif group == POD:
            return bound_pod(manifest, found.content, reason) or reason
        elif group == NODE:
            return reason
        elif group in _KINDS:
            self._set(self.values.setdefault(manifest.kind, {}), manifest, _stand_in(manifest, reason))
        else:
            self.left_out.append(LeftOut(manifest.kind or "object", *place_of(manifest), reason))
        return None

    def note_duplicate(self, manifest: Manifest) -> None:
        """Record that an object of the same name came before."""
        self.left_out.append(duplicate(manifest.kind, *place_of(manifest)))

    def update(self, other: SchedulingContents) -> None:
        """Add the objects of other contents; they replace objects of the same name."""
        for kind, values in other.values.items():
            mine = self.values.setdefault(kind, {})
            self.left_out += [duplicate(kind, *place) for place in values.keys() & mine.keys()]
            mine.update(values)
        for group, objects in other.objects.items():
            known = self.objects.setdefault(group, {})
            self.left_out += [duplicate(group.kind, *place) for place in objects.keys() & known.keys()]
            known.update(objects)
        self.left_out += other.left_out

    def _set(self, values: dict[Place, T], manifest: Manifest, value: T) -> None:
        place = place_of(manifest)
        if place in values:
            self.note_duplicate(manifest)
        values[place] = value


def scheduling_forms(needs: ClusterNeeds) -> dict[GroupKind, type[msgspec.Struct]]:
    """Return the forms of the kinds that are decoded in more detail when nodes are sized."""
    wanted: dict[GroupKind, type[msgspec.Struct]] = {}
    if needs.scheduling:
        # Workloads are read as objects that can be scaled, like any other kind.
        wanted = {group: ContentForm for group, kind in _KINDS.items() if kind.name not in WORKLOADS}
        wanted |= {NODE: SizedNodeForm, POD: SchedulingPodForm}
    return wanted


def place_of(manifest: Manifest) -> Place:
    """Return the namespace and name of an object; as with kubectl, `default` where it states no namespace."""
    if manifest.kind in _CLUSTER_SCOPED:
        return "", manifest.metadata.name
    return manifest.metadata.namespace or "default", manifest.metadata.name


def object_text(manifest: Manifest) -> str:
    """Return an object's kind, namespace and name as messages show them."""
    namespace, name = place_of(manifest)
    kind = manifest.kind or "object"
    if not name:
        return f"{kind} without a name"
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def version_problem(manifest: Manifest) -> str:
    """Return why the version of an object of a known kind cannot be read; empty if it can."""
    known = _API_VERSIONS.get(group_kind(manifest))
    if known is None or manifest.api_version == known:
        return ""
    return f"{object_text(manifest)}: the apiVersion {manifest.api_version} is not known: write the object as {known}"


def bound_pod(manifest: Manifest, content: bytes | msgspec.Raw, problem: str) -> ClusterPod | None:
    """Return a substitute for a pod that cannot be read; None if it is not bound."""
    try:
        node = _BOUND_POD.decode(content).spec.node
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return unreadable_bound_pod(*place_of(manifest), node, problem) if node else None


def _whole(found: FileObject) -> JsonObject | str:
    try:
        content = _OBJECT.decode(found.content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"{object_text(found.manifest)}: {error}"
    metadata = content.get("metadata")
    if isinstance(metadata, dict):
        # It may be larger than the rest.
        metadata.pop("managedFields", None)
    return {"apiVersion": found.manifest.api_version, "kind": found.manifest.kind} | content


def _stand_in(manifest: Manifest, problem: str) -> SchedulingValue | str:
    """Return a substitute for an object that cannot be read, so that nothing is permitted because of the gap."""
    namespace, name = place_of(manifest)
    if manifest.kind == "PodDisruptionBudget":
        return forbidding_budget(namespace, name, problem)
    if manifest.kind in WORKLOADS:
        return WorkloadRecord(WorkloadFacts(manifest.kind, namespace, name, "", None, None, problem))
    return problem


def duplicate(kind: str, namespace: str, name: str) -> LeftOut:
    """Return the entry for an earlier object of the same name."""
    named = f"{namespace}/{name}" if namespace else name
    return LeftOut(kind, namespace, name, f"{kind} {named} is in the files more than once: the last one is used")
