"""The plugins of node groups: each recommendation has its own, which is asked before each of its decisions."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from adapter.foundation.cluster.values.state import Observed
from recommender.kinds.cluster_size.node_groups.plugin_host import PluginHost

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterState
    from recommender.kinds.cluster_size.model.size_settings import NodeGroupSources, PluginGroups
    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginReading


class ReadsPlugins(Protocol):
    """Asks plugins."""

    def read(self, recommendation: str, sources: NodeGroupSources, cluster: ClusterState) -> PluginReading | None:
        """Return what the plugin of a recommendation states now; None if it has none."""
        ...


class PluginHosts:
    """The plugins of all recommendations. For any number of threads, of which one asks for a recommendation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hosts: dict[str, tuple[PluginGroups, PluginHost]] = {}

    def read(self, recommendation: str, sources: NodeGroupSources, cluster: ClusterState) -> PluginReading | None:
        """Return what the plugin of a recommendation states now; None if it has none."""
        settings = sources.plugin
        with self._lock:
            known = self._hosts.pop(recommendation, None)
            if known is not None and known[0] != settings:
                known[1].close()
                known = None
            if settings is None:
                return None
            known = self._hosts[recommendation] = known or (settings, PluginHost(settings))
        nodes = cluster.nodes.value if isinstance(cluster.nodes, Observed) else ()
        return known[1].read(nodes)

    def close(self) -> None:
        """Let all plugins release what they hold."""
        with self._lock:
            hosts, self._hosts = self._hosts, {}
        for _, host in hosts.values():
            host.close()
