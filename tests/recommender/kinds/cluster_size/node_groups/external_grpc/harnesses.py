"""A provider behind gRPC, and hosts that call it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.model.size_settings import ExternalGrpcGroups, NodeGroupSources
from recommender.kinds.cluster_size.node_groups.discover import node_groups
from recommender.kinds.cluster_size.node_groups.plugin_host import PluginHost, load_provider
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import state
from tests.support.grpc_provider import CloudGroup, GrpcProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recommender.kinds.cluster_size.model.groups import NodeGroups
    from recommender.kinds.cluster_size.model.size_settings import ProviderSettings
    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginReading
    from recommender.kinds.cluster_size.node_groups.protocol import CloudProvider

DEFAULTS = GroupOptions(0.5, 0.5, 600.0, 1200.0, 900.0, ignore_daemon_sets_utilization=False)
NODES = (node("n1", provider_id="x:///1"), node("n2", provider_id="x:///2"), node("n3", provider_id="x:///9"))


def two_groups() -> tuple[CloudGroup, CloudGroup]:
    return CloudGroup("small", 0, 5, ["x:///1", "x:///2"], price=0.1), CloudGroup("large", 1, 3, cpu="16")


@contextmanager
def served(
    provider: GrpcProvider,
    timeout_seconds: float = 10.0,
    load: Callable[[ProviderSettings], CloudProvider] = load_provider,
) -> Iterator[PluginHost]:
    """Serve a provider without TLS, and yield its host."""
    address = provider.start()
    host = PluginHost(settings(address, timeout_seconds), seconds=30.0, load=load)
    try:
        yield host
    finally:
        host.close()
        provider.stop()


def settings(address: str, timeout_seconds: float = 10.0) -> ExternalGrpcGroups:
    return ExternalGrpcGroups(address, timeout_seconds=timeout_seconds, defaults=DEFAULTS)


def groups_of(*readings: PluginReading) -> NodeGroups:
    sources = NodeGroupSources(external_grpc=settings("localhost:1"))
    return node_groups(sources, state(nodes=NODES), 1000.0, readings)
