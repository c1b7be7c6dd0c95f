"""Kinds of objects for commands that need no cluster: those of a named cluster, or else those built into Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.resources import BUILT_IN, Resource, UnknownResourceError, find_resource
from adapter.foundation.options.clients import kubernetes_client
from adapter.foundation.options.cluster import cluster_settings
from adapter.foundation.sources.kubernetes.discovery import KindDiscovery

if TYPE_CHECKING:
    from adapter.foundation.objects.resources import ResolveResource
    from adapter.foundation.service.flags.table import FlagValues


def kinds_by(values: FlagValues) -> ResolveResource:
    """Return the function that finds kinds: in the cluster of --kubeconfig or --context, or else among built-in kinds.

    Raises KubernetesError.
    """
    cluster = cluster_settings(values)
    if not cluster.is_named:
        return _built_in
    discovery = KindDiscovery(kubernetes_client(cluster))
    discovery.refresh()
    return discovery.resource


def _built_in(group: str, name: str) -> Resource:
    """Return a built-in kind, or if the group is unknown, a kind made up from the names in a rule.

    A group that is not built into Kubernetes belongs to custom resources, and only a cluster could say whether they
    exist.
    """
    try:
        return find_resource(BUILT_IN, group, name)
    except UnknownResourceError:
        if not group or any(resource.group.startswith(group) for resource in BUILT_IN):
            raise
    name = name.lower()
    return Resource(group, "v1", name, name, name.capitalize(), namespaced=True, scope_is_known=False)
