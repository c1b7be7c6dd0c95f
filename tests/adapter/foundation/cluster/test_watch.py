"""The facts of a cluster by watch, from a scripted API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from adapter.foundation.cluster.files.reading import read_contents, state_of
from adapter.foundation.cluster.values.state import ClusterNeeds, CountQuery, ObjectKind, Observed, Unknown
from adapter.foundation.cluster.watch.watch import ClusterWatch
from adapter.foundation.objects.resources import Resource
from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchMetrics
from adapter.foundation.sources.kubernetes.lists.list_watch import WatchSettings
from adapter.foundation.time.clock import Moment
from tests.adapter.foundation.cluster.test_files import NEEDS, OBJECTS, written
from tests.adapter.foundation.cluster.watched_facts import (
    ALL_NODES,
    ENDPOINTS,
    NOW,
    PODS,
    Changes,
    names,
    put,
    settings,
    watching,
)
from tests.support.cluster_objects import endpoint, node_object, slice_object
from tests.support.fake_apiserver import Fault
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from tests.adapter.foundation.sources.kubernetes.conftest import Tasks
    from tests.support.fake_apiserver import FakeApiServer


def test_setting_the_wall_clock_back_does_not_change_the_age_of_facts(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, node_object("a"))
    now = [Moment(0.0, NOW)]
    clocks = settings(wall_clock=lambda: now[0].wall, clock=lambda: now[0].monotonic)
    watch = ClusterWatch(client, ALL_NODES, tasks.start, clocks, Changes())
    watch.await_first_lists(10.0)
    until(lambda: server.watching("nodes"))
    now[0] = Moment(7.0, NOW + 7.0 - 3600.0)
    nodes = watch.state().nodes
    assert isinstance(nodes, Observed)
    # The answer to the watch may come before or after the clock was set.
    assert nodes.time in {now[0].wall - 7.0, now[0].wall}


def test_a_watch_gives_the_same_state_as_files(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks, tmp_path: Path
) -> None:
    for content in OBJECTS:
        put(server, content)
    watch = watching(client, tasks, NEEDS)
    # The time at which the stand-in creates objects.
    stated = [
        content | {"metadata": content["metadata"] | {"creationTimestamp": "2026-01-01T00:00:00Z"}}
        for content in OBJECTS
    ]
    path = written(tmp_path / "all.json", *stated)
    assert watch.state() == state_of(read_contents(path), NEEDS, NOW, path)


def test_only_what_is_needed_is_watched_and_counts_share_watches(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    needs = ClusterNeeds(
        counts=frozenset(
            {
                CountQuery("pods", "", "app=web"),
                CountQuery("pods", "shop", " app=web "),
                CountQuery("pods", "shop", "app = web"),
                CountQuery("pods", "shop"),
                CountQuery("services", "shop"),
            }
        )
    )
    watching(client, tasks, needs)
    listed = sorted((request.path, request.query.get("labelSelector", "")) for request in server.asked("list"))
    assert listed == [
        ("/api/v1/namespaces/shop/pods", ""),
        ("/api/v1/namespaces/shop/services", ""),
        ("/api/v1/pods", "app=web"),
    ]
    assert all("PartialObjectMetadata" in request.headers["Accept"] for request in server.asked("list"))


def test_changes_reach_the_state_and_are_announced(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, node_object("a"))
    server.put("pods", "shop", "web-1", {"app": "web"})
    changes = Changes()
    web = CountQuery("pods", "", "app=web")
    watch = watching(client, tasks, ClusterNeeds(nodes=True, counts=frozenset({web})), changes)
    before = changes.seen
    put(server, node_object("b"))
    server.put("pods", "shop", "web-2", {"app": "web"})
    server.put("pods", "shop", "db-1", {"app": "db"})
    server.put("pods", "shop", "web-1", {"app": "old"})
    server.put("pods", "shop", "web-3", {"app": "web"})
    until(lambda: names(watch.state()) == ["a", "b"] and watch.state().counts[web] == Observed(2, NOW))
    until(lambda: changes.seen == before + 4)
    server.remove("nodes", "", "a")
    server.remove("pods", "shop", "web-3")
    until(lambda: names(watch.state()) == ["b"] and watch.state().counts[web] == Observed(1, NOW))


def test_a_heartbeat_keeps_the_node_object_and_is_not_announced(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, node_object("a"))
    put(server, node_object("b"))
    changes = Changes()
    watch = watching(client, tasks, ALL_NODES, changes)
    first, seen = watch.state().nodes, changes.seen
    for minute in range(5):
        put(server, node_object("a", heartbeat=f"2026-11-22T06:0{minute}:00Z"))
    put(server, node_object("b", ready="False"))
    until(lambda: changes.seen == seen + 1)
    now = watch.state().nodes
    assert isinstance(first, Observed)
    assert isinstance(now, Observed)
    assert now.value[0] is first.value[0]
    assert not now.value[1].ready


def test_a_new_list_of_the_same_nodes_keeps_the_node_objects(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, node_object("a"))
    changes = Changes()
    watch = watching(client, tasks, ALL_NODES, changes)
    until(lambda: server.watching("nodes") == 1)
    first, seen = watch.state().nodes, changes.seen
    server.expire_watches()
    until(lambda: len(server.asked("list", "nodes")) == 2 and server.watching("nodes") == 1)
    now = watch.state().nodes
    assert isinstance(first, Observed)
    assert isinstance(now, Observed)
    assert now.value is first.value
    assert changes.seen == seen


def test_an_unusable_node_is_left_out_until_it_is_usable(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, node_object("a"))
    put(server, node_object("b", "four"))
    watch = watching(client, tasks, ALL_NODES)
    assert names(watch.state()) == ["a"]
    assert watch.state().problems[0].startswith("Node b: status.allocatable.cpu: 'four'")
    put(server, node_object("b"))
    until(lambda: names(watch.state()) == ["a", "b"])
    assert watch.state().problems == ()
    put(server, node_object("a") | {"status": {"conditions": "all"}})
    until(lambda: names(watch.state()) == ["b"])
    reason = "nodes that cannot be read are left out (1): the log names them"
    until(lambda: watch.state().problems == (reason,))
    server.remove("nodes", "", "b")
    until(lambda: watch.state().nodes == Unknown(reason))


def test_a_missing_permission_is_named(server: FakeApiServer, client: KubernetesClient, tasks: Tasks) -> None:
    server.forbid("list", "nodes")
    server.forbid("list", "horizontalpodautoscalers")
    needs = ClusterNeeds(nodes=True, autoscaler_namespaces=frozenset({"shop"}), counts=frozenset({PODS}))
    watch = watching(client, tasks, needs)
    state = watch.state()
    assert isinstance(state.nodes, Unknown)
    assert state.nodes.reason.startswith("nodes: allow list and watch on nodes in the core group: ")
    hpas = state.autoscalers["shop"]
    assert isinstance(hpas, Unknown)
    assert hpas.reason.startswith(
        "horizontalpodautoscalers.autoscaling in the namespace shop: "
        "allow list and watch on horizontalpodautoscalers in the API group autoscaling: "
    )
    assert state.counts[PODS] == Observed(0, NOW)
    server.allow("list", "nodes")
    until(lambda: isinstance(watch.state().nodes, Observed))


def test_nodes_that_have_not_been_listed_are_unknown(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    server.faults.append(Fault("list", "status", code=503, times=1000))
    state = watching(client, tasks, ALL_NODES).state()
    assert isinstance(state.nodes, Unknown)
    assert state.nodes.reason.startswith("nodes: the first list has not arrived yet: ")
    assert "503" in state.nodes.reason
    assert not state.nodes.is_awaited


def test_nodes_are_awaited_until_the_first_list_arrives(client: KubernetesClient) -> None:
    nodes = ClusterWatch(client, ALL_NODES, lambda _name, _run: None, settings()).state().nodes
    assert nodes == Unknown("nodes: the first list has not arrived yet", is_awaited=True)


def test_facts_keep_their_time_while_the_server_is_unreachable(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, node_object("a"))
    clock = [NOW]
    watch = ClusterWatch(client, ALL_NODES, tasks.start, settings(wall_clock=lambda: clock[0]), Changes())
    watch.await_first_lists(10.0)
    until(lambda: server.watching("nodes") == 1)
    server.stop()
    until(lambda: watch._watches.running[0].reflector.failure is not None)
    clock[0] = NOW + 300.0
    state = watch.state()
    assert isinstance(state.nodes, Observed)
    assert (names(state), state.nodes.time) == (["a"], NOW)
    assert state.nodes.failure.startswith("GET /api/v1/nodes: ")
    server.start()
    until(lambda: isinstance(found := watch.state().nodes, Observed) and found.time == NOW + 300.0)


def test_new_needs_start_and_stop_watches_and_tasks_are_reused(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, node_object("a"))
    registry = CollectorRegistry()
    made = settings(telemetry=WatchMetrics(registry, "test"))
    watch = ClusterWatch(client, ClusterNeeds(nodes=True, counts=frozenset({PODS})), tasks.start, made, Changes())
    watch.await_first_lists(10.0)
    until(lambda: server.watching("nodes") == server.watching("pods") == 1)
    web = CountQuery("pods", "", "app=web")
    services = CountQuery("services")

    def synced(resource: str) -> float | None:
        return registry.get_sample_value("test_watch_synced", {"resource": resource})

    watch.change(ClusterNeeds(nodes=True, counts=frozenset({web})))
    assert PODS not in watch.state().counts
    until(
        lambda: [request.query.get("labelSelector") for request in server.asked("watch", "pods")] == [None, "app=web"]
    )
    watch.change(ClusterNeeds(counts=frozenset({services})))
    until(lambda: watch.state().counts == {services: Observed(0, NOW)})
    until(lambda: (synced("nodes"), synced("pods"), synced("services")) == (None, None, 1.0))
    assert watch.state().nodes == Unknown("nodes are not watched")
    assert len(server.asked("list", "nodes")) == 1
    assert len(tasks.names) <= 4


def test_a_quiet_watch_is_reopened_before_its_facts_are_stale(client: KubernetesClient, tasks: Tasks) -> None:
    watch = ClusterWatch(client, ALL_NODES, tasks.start, WatchSettings())
    assert watch._settings.window_seconds[1] + 5.0 < 60.0
    assert watch._settings.silence_seconds < 60.0


def test_an_address_counts_once_for_each_service_while_slices_change(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, slice_object("web-1", "shop", "web", [endpoint("10.0.0.1"), endpoint("10.0.0.2")]))
    watch = watching(client, tasks, ClusterNeeds(counts=frozenset({ENDPOINTS})))

    def ready(number: int) -> bool:
        return watch.state().counts[ENDPOINTS] == Observed(number, NOW)

    assert ready(2)
    put(server, slice_object("web-2", "shop", "web", [endpoint("10.0.0.2"), endpoint("10.0.0.3")]))
    until(lambda: ready(3))
    put(server, slice_object("web-1", "shop", "web", [endpoint("10.0.0.1", ready=False)]))
    until(lambda: ready(2))
    put(server, slice_object("web-2", "shop", "api", [endpoint("10.0.0.2")]))
    until(lambda: ready(1))
    server.remove("endpointslices", "shop", "web-2")
    until(lambda: ready(0))


@pytest.mark.parametrize(
    ("is_optional", "is_served", "warnings"), [(True, False, 0), (False, False, 1), (True, True, 1)]
)
def test_a_missing_optional_kind_is_not_logged_and_a_refusal_is_logged_once(
    server: FakeApiServer,
    client: KubernetesClient,
    tasks: Tasks,
    caplog: pytest.LogCaptureFixture,
    *,
    is_optional: bool,
    is_served: bool,
    warnings: int,
) -> None:
    kind = ObjectKind("example.com", "sizers", "Sizer", "shop", is_optional=is_optional)
    if is_served:
        server.resources.append(Resource("example.com", "v1", "sizers", "sizer", "Sizer", namespaced=True))
        server.forbid("list", "sizers")
    watch = ClusterWatch(client, ClusterNeeds(objects=frozenset({kind})), tasks.start, settings())
    until(watch.has_tried_lists)
    found = watch.state().objects[kind]
    assert isinstance(found, Unknown)
    assert found.is_refused

    def logged_warnings() -> int:
        texts = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
        return sum("sizers" in text for text in texts)

    # The reflector logs it after the first list counts as tried.
    until(lambda: logged_warnings() >= warnings)
    assert logged_warnings() == warnings
