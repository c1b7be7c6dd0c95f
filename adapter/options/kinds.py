"""Kinds of objects for commands that need no cluster: those of the named one, else those of Kubernetes itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.objects.resources import BUILT_IN, Resource, UnknownResourceError, find_resource
from adapter.sources.kubernetes.access import access
from adapter.sources.kubernetes.client import KubernetesClient
from adapter.sources.kubernetes.discovery import KindDiscovery

if TYPE_CHECKING:
    from adapter.objects.resources import ResolveResource
    from adapter.service.flags.table import FlagValues


def kinds_by(values: FlagValues) -> ResolveResource:
    """Return how kinds are found: with --kubeconfig or --context by asking the cluster. Raises KubernetesError."""
    kubeconfig = values.path("kubeconfig")
    if kubeconfig is None and not values.text("context"):
        return _built_in
    discovery = KindDiscovery(
        KubernetesClient(access(str(kubeconfig) if kubeconfig else None, values.text("context") or None))
    )
    discovery.refresh()
    return discovery.resource


def _built_in(group: str, name: str) -> Resource:
    """Return a kind of Kubernetes, or what a rule says of one that only a cluster could tell about.

    A group that Kubernetes itself does not have belongs to custom resources: that they exist is taken on trust.
    """
    try:
        return find_resource(BUILT_IN, group, name)
    except UnknownResourceError:
        if not group or any(resource.group.startswith(group) for resource in BUILT_IN):
            raise
    name = name.lower()
    return Resource(group, "v1", name, name, name.capitalize(), namespaced=True)
