"""The paths of targets, and the documents of their scale subresource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from adapter.foundation.objects.integers import INT32_MAX
from adapter.foundation.objects.resources import ResolveResource, UnknownResourceError

if TYPE_CHECKING:
    from recommender.decisions.record import TargetReference


class ScaleDocumentError(ValueError):
    """The answer is not a Scale."""


def replicas_of(scale: Mapping[str, Any]) -> int:
    """Return `spec.replicas`; the API omits a 0. Raises ScaleDocumentError."""
    spec = scale.get("spec") or {}
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else None
    if scale.get("kind") != "Scale" or type(replicas) is not int or not 0 <= replicas <= INT32_MAX:
        raise ScaleDocumentError("the answer is not an autoscaling/v1 Scale with a whole number of replicas")
    return replicas


def uid_of(document: Mapping[str, Any]) -> str:
    """Return the UID in the metadata of an object, which for a Scale is that of the scaled object; empty if missing."""
    metadata = document.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    return uid if isinstance(uid, str) else ""


def with_replicas(scale: Mapping[str, Any], replicas: int) -> dict[str, Any]:
    """Return the Scale with this number of replicas; its resource version stays the one that was read."""
    return {**scale, "spec": {**(scale.get("spec") or {}), "replicas": replicas}}


def target_path(target: TargetReference, resolve: ResolveResource) -> str:
    """Return the path of a target in the API version that the target names. Raises UnknownResourceError."""
    group, _, version = target.api_version.rpartition("/")
    resource = resolve(group, target.kind)
    if resource.group != group:
        raise UnknownResourceError(f"no kind {target.kind!r} in API version {target.api_version!r}: check apiVersion")
    if resource.kind != target.kind:
        # A lookup also accepts plural names and ignores case, but an HPA states the exact kind: with any other
        # spelling, an owner would be missed, and two recommendations for one object would not know of each other.
        raise UnknownResourceError(f"no kind {target.kind!r} in {target.api_version}: write {resource.kind!r}")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    scope = f"/namespaces/{target.namespace}" if resource.namespaced else ""
    return f"{root}{scope}/{resource.plural}/{target.name}"
