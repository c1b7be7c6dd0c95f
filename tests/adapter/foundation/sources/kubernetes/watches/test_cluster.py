from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.options.clients import ObjectSettings, objects_for_one_run
from adapter.foundation.options.cluster import ClusterSettings
from adapter.foundation.sources.kubernetes.lists.list_watch import WatchSettings
from adapter.foundation.sources.kubernetes.watches.cluster import PODS, ClusterObjects
from adapter.foundation.sources.objects import (
    ObjectsError,
    ObjectsForbiddenError,
    ObjectsNotServedError,
    ObjectsNotSyncedError,
    ObjectSource,
)
from adapter.foundation.time.backoff import Backoff
from tests.support.fake_apiserver import FakeApiServer, Fault
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path
    from threading import Event

    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from tests.adapter.foundation.sources.kubernetes.conftest import Tasks

SERVICES = find_resource(BUILT_IN, "", "services")
DEPLOYMENTS = find_resource(BUILT_IN, "apps", "deployments")
NODES = find_resource(BUILT_IN, "", "nodes")


@pytest.fixture
def cluster(client: KubernetesClient, tasks: Tasks) -> ClusterObjects:
    return ClusterObjects(client, tasks.start, settings(refused_seconds=0.1))


def settings(refused_seconds: float) -> WatchSettings:
    return WatchSettings(
        window_seconds=(60.0, 60.0),
        backoff=lambda: Backoff(first_seconds=0.01, longest_seconds=0.05),
        refused_seconds=refused_seconds,
    )


def failure_of(cluster: ObjectSource, resource: Resource) -> ObjectsError | None:
    try:
        cluster.names(resource, None, EVERYTHING)
    except ObjectsError as error:
        return error
    return None


def test_a_cluster_is_an_object_source(cluster: ClusterObjects) -> None:
    source: ObjectSource = cluster
    assert source.resource("", "pod") == PODS


def test_pods_are_watched_from_the_start(server: FakeApiServer, cluster: ClusterObjects, tasks: Tasks) -> None:
    server.put("pods", "shop", "a", {"app": "web"})
    server.put("pods", "chat", "b", {"app": "web"})
    until(lambda: cluster.is_synced(PODS))
    until(lambda: cluster.names(PODS, "shop", parse_selector("app=web")) == ("a",))
    until(lambda: cluster.namespaces_of(PODS) == ("chat", "shop"))
    assert tasks.names == ["discovery", "watch pods"]


@contextmanager
def unanswered(server: FakeApiServer) -> Iterator[None]:
    """Keep every request waiting during the block, so that no first list arrives before it is missed."""
    with server.store.changed:
        yield


def test_other_kinds_are_watched_from_their_first_request(
    server: FakeApiServer, cluster: ClusterObjects, tasks: Tasks
) -> None:
    server.put("deployments", "shop", "web", {"tier": "front"})
    assert not cluster.is_synced(DEPLOYMENTS)
    assert not server.asked("list", "deployments")
    not_yet = r"^deployments\.apps: the first list has not arrived yet"
    with unanswered(server), pytest.raises(ObjectsNotSyncedError, match=not_yet):
        cluster.names(DEPLOYMENTS, "shop", EVERYTHING)
    until(lambda: cluster.is_synced(DEPLOYMENTS))
    assert cluster.names(DEPLOYMENTS, "shop", EVERYTHING) == ("web",)
    assert tasks.names.count("watch deployments.apps") == 1


def test_a_caller_can_wait_for_the_first_list(server: FakeApiServer, cluster: ClusterObjects) -> None:
    server.put("services", "shop", "front")
    with unanswered(server):
        assert isinstance(failure_of(cluster, SERVICES), ObjectsNotSyncedError)
    cluster.await_first_list(SERVICES, 20)
    assert cluster.names(SERVICES, "shop", EVERYTHING) == ("front",)


def test_a_first_list_that_fails_is_not_waited_for(server: FakeApiServer, cluster: ClusterObjects) -> None:
    server.faults.append(Fault("list", "status", code=500, times=1000))
    failure_of(cluster, SERVICES)
    cluster.await_first_list(SERVICES, 3600)
    assert "500" in str(failure_of(cluster, SERVICES))


def test_a_command_waits_until_the_first_list_succeeds(server: FakeApiServer, tmp_path: Path) -> None:
    server.put("services", "shop", "front")
    server.faults.append(Fault("list", "status", code=429, times=1000))
    kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
    with objects_for_one_run(ObjectSettings(files=None, cluster=ClusterSettings(kubeconfig, None))) as cluster:
        assert isinstance(failure_of(cluster, SERVICES), ObjectsNotSyncedError)
        until(lambda: len(server.asked("list", "services")) >= 2)
        server.faults.clear()
        cluster.await_first_list(SERVICES, 20)
        assert cluster.names(SERVICES, "shop", EVERYTHING) == ("front",)


def test_a_command_does_not_wait_for_a_list_that_is_refused(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    cluster = ClusterObjects(client, tasks.start, replace(settings(refused_seconds=0.1), retries_first_list=True))
    server.faults.append(Fault("list", "status", code=403, times=1000))
    failure_of(cluster, SERVICES)
    cluster.await_first_list(SERVICES, 3600)
    assert "403" in str(failure_of(cluster, SERVICES))


def test_a_request_for_namespaces_starts_a_watch(server: FakeApiServer, cluster: ClusterObjects) -> None:
    server.put("services", "shop", "front")
    with unanswered(server), pytest.raises(ObjectsNotSyncedError):
        cluster.namespaces_of(SERVICES)
    until(lambda: cluster.is_synced(SERVICES))
    assert cluster.namespaces_of(SERVICES) == ("shop",)


def test_objects_of_kinds_without_a_namespace_are_found(server: FakeApiServer, cluster: ClusterObjects) -> None:
    server.put("nodes", "", "n1", {"zone": "a"})
    until(lambda: failure_of(cluster, NODES) is None)
    assert cluster.names(NODES, None, parse_selector("zone=a")) == ("n1",)
    assert cluster.labels_of(NODES, None, "n1") == {"zone": "a"}
    assert cluster.labels_of(NODES, None, "n2") is None


def test_objects_that_cannot_be_read_are_counted_by_namespace(server: FakeApiServer, cluster: ClusterObjects) -> None:
    odd = '{"metadata":{"name":"odd","namespace":"shop","labels":{"app":1}}}'
    fine = '{"metadata":{"name":"web-0","namespace":"shop"}}'
    head = '"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"'
    body = f'{{{head},"metadata":{{"resourceVersion":"1"}},"items":[{odd},{fine}]}}'
    until(lambda: cluster.is_synced(PODS))
    server.faults.append(Fault("list", "garbage", body=body.encode()))

    assert cluster.unreadable(SERVICES, None) == 0, "nothing is known of a kind that is not watched"
    until(lambda: failure_of(cluster, SERVICES) is None)
    assert [cluster.unreadable(SERVICES, one) for one in ("shop", "other", None)] == [1, 0, 1]


def test_a_request_for_labels_starts_a_watch(server: FakeApiServer, cluster: ClusterObjects) -> None:
    server.put("services", "shop", "front", {"tier": "a"})
    with unanswered(server), pytest.raises(ObjectsNotSyncedError):
        cluster.labels_of(SERVICES, "shop", "front")
    until(lambda: cluster.is_synced(SERVICES))
    assert cluster.labels_of(SERVICES, "shop", "front") == {"tier": "a"}


def test_the_error_before_the_first_list_has_the_reason(server: FakeApiServer, cluster: ClusterObjects) -> None:
    server.faults.append(Fault("list", "status", code=500, times=1000))
    until(lambda: failure_of(cluster, SERVICES) is not None and "500" in str(failure_of(cluster, SERVICES)))
    assert isinstance(failure_of(cluster, SERVICES), ObjectsNotSyncedError)


@pytest.mark.parametrize(
    ("resource", "needed"),
    [
        (SERVICES, "services: needs list and watch on services in the core group"),
        (DEPLOYMENTS, "deployments.apps: needs list and watch on deployments in the API group apps"),
    ],
    ids=["core", "group"],
)
def test_the_error_for_a_forbidden_kind_names_the_permission_until_it_is_granted(
    server: FakeApiServer, cluster: ClusterObjects, resource: Resource, needed: str
) -> None:
    server.forbid("list", resource.plural)
    until(lambda: isinstance(failure_of(cluster, resource), ObjectsForbiddenError))
    assert str(failure_of(cluster, resource)).startswith(needed)
    until(lambda: cluster.is_synced(PODS))
    server.allow("list", resource.plural)
    until(lambda: failure_of(cluster, resource) is None)


def test_a_revoked_permission_is_reported_instead_of_known_objects(
    server: FakeApiServer, cluster: ClusterObjects
) -> None:
    server.put("pods", "shop", "a")
    until(lambda: server.watching("pods"))
    server.forbid("list", "pods")
    server.forbid("watch", "pods")
    server.expire_watches()
    until(lambda: isinstance(failure_of(cluster, PODS), ObjectsForbiddenError))
    assert cluster.is_synced(PODS)


@pytest.mark.parametrize("code", [403, 404])
def test_known_objects_stay_available_while_a_starting_server_refuses_all_requests(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks, code: int
) -> None:
    server.put("pods", "shop", "a")
    cluster = ClusterObjects(client, tasks.start, settings(refused_seconds=600.0))
    until(lambda: server.watching("pods"))
    for verb in ("list", "watch"):
        server.faults.append(Fault(verb, "status", code=code, times=1000))
    server.expire_watches()
    until(lambda: len(server.asked("list", "pods")) > 3)
    assert cluster.names(PODS, "shop", EVERYTHING) == ("a",)
    server.faults.clear()
    server.put("pods", "shop", "b")
    until(lambda: cluster.names(PODS, "shop", EVERYTHING) == ("a", "b"))


def test_a_kind_that_is_not_served_is_an_error(cluster: ClusterObjects) -> None:
    widgets = Resource("shop.example", "v1", "widgets", "widget", "Widget", namespaced=True)
    until(lambda: isinstance(failure_of(cluster, widgets), ObjectsNotServedError))
    assert "does not serve widgets in version v1 of the API group shop.example" in str(failure_of(cluster, widgets))


WIDGETS_BETA = Resource("shop.example", "v1beta1", "widgets", "widget", "Widget", namespaced=True)
WIDGETS = replace(WIDGETS_BETA, version="v1")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def later(self) -> bool:
        """Pass a minute: long enough that the kinds of the server are discovered again. Return False."""
        self.now += 60.0
        return False


def names_of(cluster: ClusterObjects, resource: Resource) -> Collection[str] | None:
    """Return the names of the objects in the namespace shop; None while they are not available."""
    try:
        return cluster.names(resource, "shop", EVERYTHING)
    except ObjectsError:
        return None


def serve_instead(server: FakeApiServer, before: Resource, now: Resource | None, clock: Clock) -> None:
    """Serve a kind in another version, as after an upgrade of its CustomResourceDefinition; or no longer, if None."""
    server.resources.remove(before)
    if now is not None:
        server.define(now)
    server.expire_watches()
    clock.later()


def test_a_kind_that_changes_its_version_is_still_watched(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    clock = Clock()
    server.define(WIDGETS_BETA)
    server.put("widgets", "shop", "a")
    cluster = ClusterObjects(client, tasks.start, replace(settings(refused_seconds=0.1), clock=clock))
    until(lambda: failure_of(cluster, WIDGETS_BETA) is None)
    until(lambda: server.watching("widgets"))

    serve_instead(server, WIDGETS_BETA, WIDGETS, clock)
    server.put("widgets", "shop", "b")
    # Rules name the version that was served when they were read.
    until(
        lambda: failure_of(cluster, WIDGETS_BETA) is None and cluster.names(WIDGETS_BETA, "shop", EVERYTHING) == ("b",)
    )
    assert cluster.names(WIDGETS, "shop", EVERYTHING) == ("b",)
    assert tasks.names.count("watch widgets.shop.example") == 1, "one watch, whichever version a rule names"
    until(lambda: server.watching("widgets") == 1)


def test_a_removed_kind_is_watched_in_the_version_in_which_it_returns(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    clock = Clock()
    server.define(WIDGETS_BETA)
    cluster = ClusterObjects(client, tasks.start, replace(settings(refused_seconds=0.1), clock=clock))
    until(lambda: failure_of(cluster, WIDGETS_BETA) is None)
    until(lambda: server.watching("widgets"))

    serve_instead(server, WIDGETS_BETA, None, clock)
    until(lambda: isinstance(failure_of(cluster, WIDGETS_BETA), ObjectsNotServedError) or clock.later())
    server.define(WIDGETS)
    server.put("widgets", "shop", "b")
    until(lambda: names_of(cluster, WIDGETS_BETA) == ("b",) or clock.later())


def test_a_kind_whose_watch_could_not_be_started_is_watched_at_the_next_request(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    server.put("deployments", "shop", "web")
    threads: list[RuntimeError] = []

    def start(name: str, run: Callable[[Event], None]) -> None:
        if threads:
            raise threads.pop()
        tasks.start(name, run)

    cluster = ClusterObjects(client, start, settings(refused_seconds=0.1))
    threads.append(RuntimeError("can't start new thread"))
    assert "can't start new thread" in str(failure_of(cluster, DEPLOYMENTS))
    until(lambda: failure_of(cluster, DEPLOYMENTS) is None)
    assert cluster.names(DEPLOYMENTS, "shop", EVERYTHING) == ("web",)
