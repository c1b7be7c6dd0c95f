from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.resources import BUILT_IN, Resource, UnknownResourceError, find_resource
from adapter.foundation.sources.kubernetes import discovery as kind_discovery
from adapter.foundation.sources.kubernetes.discovery import KindDiscovery
from adapter.foundation.sources.kubernetes.errors import KubernetesError, UnexpectedResponseError
from adapter.foundation.sources.kubernetes.groups import discover
from tests.support.fake_apiserver import FakeApiServer, Fault
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.sources.kubernetes.client import KubernetesClient

    from .conftest import Tasks

WIDGETS = Resource("shop.example", "v1", "widgets", "widget", "Widget", namespaced=True)
WIDGETS_BETA = Resource("shop.example", "v1beta1", "widgets", "widget", "Widget", namespaced=True)
GADGETS_BETA = Resource("shop.example", "v1beta1", "gadgets", "gadget", "Gadget", namespaced=False)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def known(discovery: KindDiscovery) -> set[Resource]:
    return set(discovery._known.resources)


@pytest.mark.parametrize("aggregated", [True, False], ids=["aggregated", "legacy"])
def test_all_kinds_are_found(server: FakeApiServer, client: KubernetesClient, aggregated: bool) -> None:  # noqa: FBT001 - a table
    server.aggregated = aggregated
    server.define(WIDGETS)
    server.define(WIDGETS_BETA)
    server.define(GADGETS_BETA)
    discovery = KindDiscovery(client)
    discovery.refresh()
    assert known(discovery) == {*BUILT_IN, WIDGETS, GADGETS_BETA}
    assert discovery.resource("", "widget") == WIDGETS
    assert discovery.resource("shop", "GADGETS") == GADGETS_BETA
    assert discovery.failing_versions == ()


@pytest.mark.parametrize("aggregated", [True, False], ids=["aggregated", "legacy"])
def test_the_core_group_comes_first(server: FakeApiServer, client: KubernetesClient, aggregated: bool) -> None:  # noqa: FBT001 - a table
    server.aggregated = aggregated
    groups = [version.group for version in discover(client)]
    assert groups[:2] == ["", "apps"]


@pytest.mark.parametrize(("aggregated", "requests"), [(True, 2), (False, 2 + len({r.api_version for r in BUILT_IN}))])
def test_aggregated_discovery_takes_two_requests(
    server: FakeApiServer,
    client: KubernetesClient,
    aggregated: bool,  # noqa: FBT001 - a table
    requests: int,
) -> None:
    server.aggregated = aggregated
    discover(client)
    assert len(server.requests) == requests


@pytest.mark.parametrize("aggregated", [True, False], ids=["aggregated", "legacy"])
def test_a_group_whose_server_is_unavailable_keeps_its_known_kinds(
    server: FakeApiServer,
    client: KubernetesClient,
    aggregated: bool,  # noqa: FBT001 - a table
) -> None:
    server.aggregated = aggregated
    server.define(WIDGETS)
    discovery = KindDiscovery(client)
    discovery.refresh()
    server.stale.add("shop.example")
    discovery.refresh()
    assert discovery.failing_versions == ("shop.example/v1",)
    assert discovery.resource("", "widgets") == WIDGETS
    assert discovery.resource("", "pods").kind == "Pod"
    server.stale.clear()
    discovery.refresh()
    assert not discovery.failing_versions


def test_metrics_served_by_this_program_do_not_count_as_kinds(server: FakeApiServer, client: KubernetesClient) -> None:
    for group in ("custom.metrics.k8s.io", "external.metrics.k8s.io", "metrics.k8s.io"):
        server.define(Resource(group, "v1beta1", "queue_length", "", "ExternalMetricValueList", namespaced=True))
    for server.aggregated in (True, False):
        discovery = KindDiscovery(client)
        discovery.refresh()
        with pytest.raises(UnknownResourceError):
            discovery.resource("", "queue_length")
    assert not server.asked("discover", "external.metrics.k8s.io/v1beta1")


def test_built_in_kinds_are_known_without_a_request(server: FakeApiServer, client: KubernetesClient) -> None:
    assert KindDiscovery(client).resource("apps", "deployment") == find_resource(BUILT_IN, "apps", "deployments")
    assert server.requests == []


def test_an_unknown_name_is_looked_up_at_once_and_then_rarely(server: FakeApiServer, client: KubernetesClient) -> None:
    clock = Clock()
    discovery = KindDiscovery(client, clock=clock)
    with pytest.raises(UnknownResourceError):
        discovery.resource("", "widgets")
    assert len(server.requests) == 2
    server.define(WIDGETS)
    clock.now += 29.0
    with pytest.raises(UnknownResourceError):
        discovery.resource("", "widgets")
    assert len(server.requests) == 2
    clock.now += 1.0
    assert discovery.resource("", "widgets") == WIDGETS
    assert len(server.requests) == 4


def test_an_unknown_name_is_an_error_while_the_server_is_unreachable(
    server: FakeApiServer, client: KubernetesClient
) -> None:
    server.stop()
    with pytest.raises(UnknownResourceError, match="widgets"):
        KindDiscovery(client).resource("", "widgets")


@pytest.mark.parametrize("body", [b"<html>", b'{"kind":"APIGroupDiscoveryList","items":[{"versions":5}]}', b"\xff"])
def test_known_kinds_stay_after_an_invalid_answer(server: FakeApiServer, client: KubernetesClient, body: bytes) -> None:
    server.faults.append(Fault("discover", "garbage", body=body))
    discovery = KindDiscovery(client)
    with pytest.raises(UnexpectedResponseError, match="not a discovery document"):
        discovery.refresh()
    assert known(discovery) == set(BUILT_IN)


def test_a_failure_of_the_root_document_is_raised(server: FakeApiServer, client: KubernetesClient) -> None:
    server.faults.append(Fault("discover", "status", code=503))
    with pytest.raises(KubernetesError):
        KindDiscovery(client).refresh()


def test_discovery_is_refreshed_regularly_and_sooner_after_a_failure(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    server.faults.append(Fault("discover", "status", code=500, times=2))
    discovery = KindDiscovery(client, refresh_seconds=0.05, retry_seconds=0.01)
    tasks.start("discovery", discovery.run)
    until(lambda: len(server.requests) > 6)
    server.define(WIDGETS)
    until(lambda: WIDGETS in known(discovery))


def test_simultaneous_lookups_of_an_unknown_name_cause_one_refresh(
    server: FakeApiServer, client: KubernetesClient
) -> None:
    server.define(WIDGETS)
    discovery = KindDiscovery(client)
    found: list[Resource] = []
    threads = [
        threading.Thread(target=lambda: found.append(discovery.resource("", "widgets")), daemon=True) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10.0)
    assert found == [WIDGETS] * 8
    assert len(server.requests) == 2


def test_a_kind_found_by_another_thread_just_after_a_lookup_is_known(
    server: FakeApiServer, client: KubernetesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.define(WIDGETS)
    discovery = KindDiscovery(client)

    def find(resources: Iterable[Resource], group: str, name: str) -> Resource:
        try:
            return find_resource(resources, group, name)
        except UnknownResourceError:
            discovery.refresh()  # As another thread does it before this one has the lock.
            raise

    monkeypatch.setattr(kind_discovery, "find_resource", find)
    assert discovery.resource("", "widgets") == WIDGETS
