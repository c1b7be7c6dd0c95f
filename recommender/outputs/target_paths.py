"""The path at which the API server serves a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.resources import ResolveResource, UnknownResourceError

if TYPE_CHECKING:
    from recommender.decisions.record import TargetReference


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
