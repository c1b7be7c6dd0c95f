"""Failed machines of a provider behind gRPC: which calls follow, and what is in them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from recommender.kinds.cluster_size.model.size_settings import NodeGroupSources
from recommender.kinds.cluster_size.node_groups.plugin_host import PluginHost
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.machine_harness import MachineHarness
from tests.recommender.kinds.cluster_size.node_groups.external_grpc.harnesses import settings
from tests.support.grpc_provider import CloudGroup, GrpcProvider, ProviderFaultError

if TYPE_CHECKING:
    from collections.abc import Iterator

JOINED = ("x:///1", "x:///2")


@contextmanager
def served_harness(provider: GrpcProvider) -> Iterator[MachineHarness]:
    stated = replace(settings(provider.start()), delete_nodes=True)
    host = PluginHost(stated, seconds=30.0)
    nodes = [node(f"n{number}", provider_id=each, created=1.0) for number, each in enumerate(JOINED)]
    try:
        yield MachineHarness(host, NodeGroupSources(external_grpc=stated), nodes)
    finally:
        host.close()
        provider.stop()


def deletions(provider: GrpcProvider) -> list[tuple[str, str, str]]:
    """Return group, provider id and reason of each machine whose deletion was requested."""
    return [
        (request.id, each.providerID, each.annotations["k8s.io/cluster-autoscaler/fake-node-reason"])
        for name, request in provider.calls
        if name == "NodeGroupDeleteNodes"
        for each in request.nodes
    ]


def cloud(*machines: str, minimum: int = 0, errors: dict[str, str] | None = None) -> GrpcProvider:
    return GrpcProvider(CloudGroup("a", minimum, 9, [*JOINED, *machines], errors=errors or {}))


def test_an_out_of_stock_machine_is_deleted_and_the_size_falls() -> None:
    provider = cloud("x:///new", errors={"x:///new": "OutOfResources"})
    with served_harness(provider) as harness:
        harness.run(240.0)
        assert deletions(provider) == [("a", "x:///new", "create-error")]
        assert provider.groups["a"].size == 2


def test_a_machine_that_never_joins_is_deleted_after_the_provision_time() -> None:
    provider = cloud("x:///lost")
    with served_harness(provider) as harness:
        harness.run(900.0)
        assert deletions(provider) == []
        harness.run(120.0)
        assert deletions(provider) == [("a", "x:///lost", "unregistered")]
        assert harness.memory.own is not None


@pytest.mark.parametrize("method", ["NodeGroupNodes", "NodeGroupTargetSize", "NodeGroups", "Refresh"])
def test_while_a_provider_fails_no_machine_is_deleted(method: str) -> None:
    provider = cloud("x:///new", errors={"x:///new": "OutOfResources"})

    def fail(_request: Any) -> Any:  # noqa: ANN401 - any message
        raise ProviderFaultError("the cloud is away", grpc.StatusCode.UNAVAILABLE)

    with served_harness(provider) as harness:
        harness.step()
        provider.instead[method] = fail
        harness.run(240.0)
        assert deletions(provider) == []


def test_the_minimum_of_the_provider_is_respected() -> None:
    provider = cloud("x:///new", "x:///lost", minimum=4, errors={"x:///new": "OutOfResources"})
    with served_harness(provider) as harness:
        harness.run(1200.0)
        assert deletions(provider) == []
        provider.groups["a"].min_size = 3
        harness.run(60.0)
        assert deletions(provider) == [("a", "x:///new", "create-error")], "what cannot be created goes first"
