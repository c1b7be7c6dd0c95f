"""Reads the targets that an entry lists, and recognizes different spellings of the same object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from adapter.foundation.cluster.facts.scale_targets import group_of
from adapter.foundation.documents.scalars import NAMESPACE, OBJECT_NAME, TEXT
from adapter.foundation.documents.sections import Given, Key, Section
from adapter.foundation.documents.shapes import ListOf, WrongValueError
from adapter.foundation.documents.tree import DocumentProblem, nearest_word, shorten
from adapter.foundation.objects.names import is_namespace_name, is_subdomain_name
from adapter.foundation.objects.resources import BUILT_IN, Resource, UnknownResourceError, find_resource
from recommender.decisions.record import TargetReference

_SHORT_NAMES: Final = {
    "deploy": "deployments",
    "rc": "replicationcontrollers",
    "rs": "replicasets",
    "sts": "statefulsets",
}
"""Short names of the built-in kinds with a scale subresource, as in `kubectl api-resources`."""
_WITHOUT_CUSTOM_KINDS: Final = frozenset(resource.group for resource in BUILT_IN if "." not in resource.group)
"""Groups in which all kinds are known, since the group of a CustomResourceDefinition has a dot."""
_VERSIONS: Final = {
    "": {"v1"},
    "apps": {"v1", "v1beta2", "v1beta1", "v1alpha1"},
    "autoscaling": {"v2", "v2beta2", "v2beta1", "v2alpha1", "v1"},
    "batch": {"v1", "v1beta1", "v2alpha1"},
    "policy": {"v1", "v1beta1", "v1alpha1"},
}
"""All versions of these groups that Kubernetes has served since 1.2, some of which old clusters still have."""


@dataclass(frozen=True, slots=True)
class TargetIdentity:
    """The identity of an object, whatever the version of its API group and the case of its kind."""

    group: str
    kind: str
    """The kind in lower case."""
    namespace: str
    name: str
    shown: str = field(compare=False)
    """The target as messages name it."""

    def __str__(self) -> str:
        """Return the target as messages name it."""
        return self.shown


def identity_of(target: TargetReference) -> TargetIdentity:
    """Return the identity of a target; no two targets of an entry may have the same one."""
    group, kind = group_of(target.api_version), target.kind.lower()
    return TargetIdentity(group, kind, target.namespace, target.name, str(target))


def manifest_kind(group: str, name: str) -> str:
    """Return the kind of a built-in resource as manifests spell it, from any name that kubectl accepts.

    Owners are recognized by the kind, so `deployments.apps` must mean the same as `Deployment`. A name that does not
    belong to a built-in resource is returned unchanged.
    """
    plain = name.lower().removesuffix(f".{group}") if group else name.lower()
    built_in = (resource for resource in BUILT_IN if resource.group == group)
    try:
        return find_resource(built_in, group, _SHORT_NAMES.get(plain, plain)).kind
    except UnknownResourceError:
        return name


def _api_version(text: str) -> str:
    """Return the text if it is VERSION or GROUP/VERSION as in a CustomResourceDefinition. Raises WrongValueError."""
    group, slash, version = text.rpartition("/")
    is_version = is_namespace_name(version) and version[0].isalpha()
    if not is_version or (slash and not is_subdomain_name(group)):
        raise WrongValueError(f"{shorten(text)!r} is not an API version", "write it as manifests do, such as apps/v1")
    return text


def _impossible_kind(given: Given) -> Iterator[DocumentProblem]:
    """Yield a problem if the API group of the target cannot have the stated kind or version."""
    api_version, kind = given.get("apiVersion"), given.get("kind")
    if api_version is None or kind is None or (group := group_of(api_version)) not in _WITHOUT_CUSTOM_KINDS:
        return
    place = f"API group {group}" if group else "core API group"
    known = {resource.kind: resource for resource in BUILT_IN if resource.group == group}
    if (found := known.get(manifest_kind(group, kind))) is not None:
        if (version := api_version.rpartition("/")[2]) not in _VERSIONS[group]:
            text = f"the {place} has no version {shorten(version)!r}"
            yield given.problem("apiVersion", text, f"write apiVersion: {found.api_version}")
        return
    fix = "write apiVersion and kind as `kubectl api-resources` prints them"
    if (served := _built_in(kind)) is not None:
        fix = f"write apiVersion: {served.api_version}"
    elif (meant := nearest_word(kind, known)) is not None:
        fix = f"did you mean {meant}?"
    yield given.problem("kind", f"the {place} has no kind {shorten(kind)!r}", fix)


def _built_in(kind: str) -> Resource | None:
    return next((each for each in BUILT_IN if each.kind == manifest_kind(each.group, kind)), None)


def _target(*, api_version: str, kind: str, namespace: str, name: str) -> TargetReference:
    return TargetReference(api_version, manifest_kind(group_of(api_version), kind), namespace, name)


TARGETS: Final = ListOf(
    Section(
        "targets",
        _target,
        (
            Key("apiVersion", TEXT.then(_api_version), "API version of the target.", "apps/v1"),
            Key("kind", TEXT, "Kind of the target.", "Deployment"),
            Key("namespace", NAMESPACE, "Namespace of the target.", "NAMESPACE"),
            Key("name", OBJECT_NAME, "Name of the target.", "NAME"),
        ),
        _impossible_kind,
    ),
    unique=identity_of,
)
