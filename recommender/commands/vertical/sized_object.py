"""The object whose containers are resized: its path, its patch, and the write of the patch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.foundation.sources.kubernetes.credentials.access import access
from adapter.foundation.sources.kubernetes.errors import KubernetesError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.options.cluster import ClusterSettings
    from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
    from recommender.decisions.record import TargetReference
    from recommender.kinds.proportional.sizes import ContainerResources

_DEADLINES: Final = RequestDeadlines(total=20.0)


def api_client(settings: ClusterSettings) -> KubernetesClient:
    """Return a client for the cluster that the flags name. Raises UsageError."""
    try:
        kubeconfig = None if settings.kubeconfig is None else str(settings.kubeconfig)
        return KubernetesClient(access(kubeconfig, settings.context), _DEADLINES)
    except KubernetesError as error:
        raise UsageError(str(error)) from error


def path_of(target: TargetReference) -> str:
    """Return the path of an object of a built-in kind."""
    plural = find_resource(BUILT_IN, "apps", target.kind).plural
    return f"/apis/{target.api_version}/namespaces/{target.namespace}/{plural}/{target.name}"


def resources_patch(
    target: TargetReference, containers: Mapping[str, Mapping[str, Any]], resource_version: str = ""
) -> dict[str, Any]:
    """Return the strategic merge patch that sets resources of containers in a pod template, and nothing else.

    If `resource_version` is given, the patch applies only to that version of the object.
    """
    metadata = {"name": target.name} | ({"resourceVersion": resource_version} if resource_version else {})
    listed = [{"name": name, "resources": resources} for name, resources in containers.items()]
    return {
        "apiVersion": target.api_version,
        "kind": target.kind,
        "metadata": metadata,
        "spec": {"template": {"spec": {"containers": listed}}},
    }


def write_resources(
    objects: ObjectClient,
    target: TargetReference,
    containers: ContainerResources,
    *,
    resource_version: str = "",
    fence: Fence | None = None,
) -> None:
    """Patch the resources of the object's containers. Raises KubernetesError."""
    patch = resources_patch(target, containers, resource_version)
    objects.patch_strategically(path_of(target), patch, fence)


def sizes_text(containers: ContainerResources) -> str:
    """Return the sizes for the log: `nginx requests cpu=200m memory=64Mi`."""
    return "; ".join(
        f"{container} {section} " + " ".join(f"{resource}={amount}" for resource, amount in amounts.items())
        for container, sections in containers.items()
        for section, amounts in sections.items()
    )
