"""The providers of node groups. Each recommendation has its own providers, asked before each of its decisions."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol, TypeAlias

from adapter.foundation.cluster.values.state import ClusterState, Observed
from recommender.kinds.cluster_size.model.size_settings import NodeGroupSources, ProviderSettings, provider_name
from recommender.kinds.cluster_size.node_groups.plugin_host import PluginHost, ProviderUnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginGroup, PluginReading
    from recommender.kinds.cluster_size.node_groups.protocol import WritableNodeGroup

    Hosts: TypeAlias = dict[str, tuple[ProviderSettings, PluginHost]]


class WritesGroups(Protocol):
    """Changes groups of providers. For any number of threads."""

    def look(self, recommendation: str, provider: str, group: str) -> PluginGroup:
        """Return the provider's current state of a group.

        Raises ProviderUnreachableError, also if what the provider states of the group is impossible.
        """

    def change(
        self, recommendation: str, provider: str, group: str, change: Callable[[WritableNodeGroup], None]
    ) -> None:
        """Make one change to a group.

        Raises OutcomeUnknownError, PluginError, and ProviderUnreachableError if nothing was sent.
        """


class PluginHosts:
    """The providers of all recommendations. For any number of threads, but only one at a time per recommendation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hosts: dict[str, Hosts] = {}

    def read(
        self, recommendation: str, sources: NodeGroupSources, cluster: ClusterState, stale_after_seconds: float
    ) -> tuple[PluginReading, ...]:
        """Return the current answers of the providers of a recommendation's node groups.

        An earlier answer counts only until it is `stale_after_seconds` old.
        """
        with self._lock:
            known = self._hosts.pop(recommendation, {})
            hosts: Hosts = {}
            for settings in sources.providers:
                name = provider_name(settings)
                same = name in known and known[name][0] == settings
                hosts[name] = known.pop(name) if same else (settings, PluginHost(settings))
            for _, former in known.values():
                former.close()
            if hosts:
                self._hosts[recommendation] = hosts
        nodes = cluster.nodes.value if isinstance(cluster.nodes, Observed) else ()
        return tuple(host.read(nodes, kept_seconds=stale_after_seconds) for _, host in hosts.values())

    def keep(self, recommendations: Collection[str]) -> None:
        """Let the providers of recommendations that are not configured any more release their resources."""
        with self._lock:
            removed = [self._hosts.pop(name) for name in self._hosts.keys() - set(recommendations)]
        _close(removed)

    def look(self, recommendation: str, provider: str, group: str) -> PluginGroup:
        """Return the provider's current state of a group. Raises ProviderUnreachableError."""
        return self._host(recommendation, provider).look(group)

    def change(
        self, recommendation: str, provider: str, group: str, change: Callable[[WritableNodeGroup], None]
    ) -> None:
        """Make one change to a group.

        Raises OutcomeUnknownError, PluginError, and ProviderUnreachableError if nothing was sent.
        """
        self._host(recommendation, provider).change(group, change)

    def _host(self, recommendation: str, provider: str) -> PluginHost:
        with self._lock:
            found = self._hosts.get(recommendation, {}).get(provider)
        if found is None:
            raise ProviderUnreachableError(f"{provider} is not configured, or has not been asked yet")
        return found[1]

    def close(self) -> None:
        """Let all providers release their resources."""
        with self._lock:
            hosts, self._hosts = self._hosts, {}
        _close(hosts.values())


def _close(removed: Iterable[Hosts]) -> None:
    for hosts in removed:
        for _, host in hosts.values():
            host.close()
