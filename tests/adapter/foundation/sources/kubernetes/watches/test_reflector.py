"""Objects are listed and watched over real HTTP, with the stand-in for kube-apiserver."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchMetrics
from adapter.foundation.sources.object_index import ObjectIndex
from tests.adapter.foundation.sources.kubernetes.watches.reflecting import PODS, SETTINGS, MetadataReflector, fill, pods
from tests.support.fake_apiserver import FakeApiServer, Fault
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from tests.adapter.foundation.sources.kubernetes.conftest import Tasks


NODES = find_resource(BUILT_IN, "", "nodes")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7])
def test_a_list_is_read_page_by_page(
    server: FakeApiServer, start: Callable[..., MetadataReflector], count: int
) -> None:
    names = fill(server, count)
    reflector = start()
    until(lambda: reflector.synced)
    assert pods(reflector) == names
    assert len(server.asked("list", "pods")) == max(1, -(-count // 2))
    assert len(reflector.index) == count


def test_only_metadata_is_requested(server: FakeApiServer, start: Callable[..., MetadataReflector]) -> None:
    start()
    until(lambda: server.watching("pods"))
    listed, watched = server.asked("list", "pods")[0], server.asked("watch", "pods")[0]
    assert listed.headers["Accept"].startswith("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,")
    assert watched.headers["Accept"].startswith("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,")
    assert watched.query["allowWatchBookmarks"] == "true"
    assert watched.query["timeoutSeconds"] == "60"


def test_whole_objects_are_accepted_too(server: FakeApiServer, start: Callable[..., MetadataReflector]) -> None:
    server.metadata_only = False
    fill(server, 3)
    reflector = start()
    until(lambda: server.watching("pods"))
    server.put("pods", "shop", "web-99", {"app": "web"})
    until(lambda: pods(reflector) == ("web-00", "web-01", "web-02", "web-99"))


def test_changes_are_followed(server: FakeApiServer, start: Callable[..., MetadataReflector]) -> None:
    server.put("pods", "shop", "a", {"app": "web"})
    reflector = start()
    until(lambda: server.watching("pods"))
    server.put("pods", "shop", "b", {"app": "web"})
    until(lambda: pods(reflector, "app=web") == ("a", "b"))
    server.put("pods", "shop", "a", {"app": "api"})
    until(lambda: pods(reflector, "app=web") == ("b",))
    server.remove("pods", "shop", "b")
    until(lambda: pods(reflector) == ("a",))
    assert len(server.asked("list", "pods")) == 1


def test_other_kinds_are_not_mixed_in(server: FakeApiServer, start: Callable[..., MetadataReflector]) -> None:
    server.put("services", "shop", "front", {"app": "web"})
    server.put("pods", "shop", "a")
    reflector = start()
    until(lambda: reflector.synced)
    assert pods(reflector) == ("a",)


def test_after_a_watch_ends_the_next_one_starts_without_a_list(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    reflector = start(dataclasses.replace(SETTINGS, window_seconds=(1.0, 1.0)))
    until(lambda: len(server.asked("watch", "pods")) >= 2)
    server.put("pods", "shop", "late")
    until(lambda: pods(reflector) == ("late",))
    assert len(server.asked("list", "pods")) == 1


def test_bookmarks_advance_the_version_so_that_compaction_needs_no_new_list(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    server.bookmark_seconds = 0.05
    reflector = start(dataclasses.replace(SETTINGS, window_seconds=(1.0, 1.0)))
    until(lambda: server.watching("pods"))
    server.put("services", "shop", "elsewhere")
    present = str(server.store.version)
    server.compact()
    until(lambda: server.asked("watch", "pods")[-1].query["resourceVersion"] == present)
    assert reflector.failure is None
    assert len(server.asked("list", "pods")) == 1


def test_an_expired_version_leads_to_a_new_list_without_the_deleted_objects(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    fill(server, 5)
    reflector = start()
    until(lambda: server.watching("pods"))
    # The next watch starts from a version that is compacted meanwhile, and misses what happened in between.
    server.faults.append(Fault("watch", "status", code=503, times=2))
    server.stop()
    server.remove("pods", "shop", "web-01")
    server.put("pods", "shop", "web-77")
    server.compact()
    server.start()
    until(lambda: pods(reflector) == ("web-00", "web-02", "web-03", "web-04", "web-77"))


def test_an_error_event_of_an_open_watch_leads_to_a_new_list(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    reflector = start()
    until(lambda: server.watching("pods"))
    server.expire_watches()
    until(lambda: len(server.asked("list", "pods")) == 2)
    until(lambda: reflector.failure is None)


def test_a_list_whose_pages_expire_is_started_again(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    names = fill(server, 5)
    server.faults.append(Fault("list", "status", code=410, skip=1))
    reflector = start()
    until(lambda: reflector.synced)
    assert pods(reflector) == names
    assert [("continue" in asked.query) for asked in server.asked("list", "pods")] == [False, True, False, True, True]


def test_known_objects_stay_known_during_a_new_list(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    names = fill(server, 4)
    reflector = start()
    until(lambda: server.watching("pods"))
    server.faults.append(Fault("list", "hang", skip=1, times=1))
    server.expire_watches()
    until(lambda: len(server.asked("list", "pods")) == 4)
    assert reflector.synced
    assert pods(reflector) == names


def test_the_state_is_exposed_as_metrics(server: FakeApiServer, start: Callable[..., MetadataReflector]) -> None:
    registry = CollectorRegistry()
    server.faults.append(Fault("list", "status", code=500, times=1))
    reflector = start(
        dataclasses.replace(
            SETTINGS, telemetry=WatchMetrics(registry, "tidewatch_adapter"), wall_clock=lambda: 1_800_000_000.0
        )
    )
    labels = {"resource": "pods"}
    until(lambda: registry.get_sample_value("tidewatch_adapter_watch_synced", labels) == 1.0)
    assert reflector.synced
    assert registry.get_sample_value("tidewatch_adapter_watch_last_heard_timestamp_seconds", labels) == 1_800_000_000.0
    failures = {"resource": "pods", "error": "ServerError"}
    assert registry.get_sample_value("tidewatch_adapter_watch_failures_total", failures) == 1.0


def test_nothing_is_synced_before_the_first_list(client: KubernetesClient) -> None:
    registry = CollectorRegistry()
    reflector = MetadataReflector(
        client,
        PODS,
        ObjectIndex(),
        dataclasses.replace(SETTINGS, telemetry=WatchMetrics(registry, "tidewatch_adapter")),
    )
    assert not reflector.synced
    assert registry.get_sample_value("tidewatch_adapter_watch_synced", {"resource": "pods"}) == 0.0


def test_a_stop_ends_a_watch_that_waits_for_the_next_event(server: FakeApiServer, client: KubernetesClient) -> None:
    stop = threading.Event()
    reflector = MetadataReflector(client, PODS, ObjectIndex(), dataclasses.replace(SETTINGS, silence_seconds=60.0))
    running = threading.Thread(target=reflector.run, args=(stop,), daemon=True)
    running.start()
    until(lambda: server.watching("pods"))
    stop.set()
    running.join(10.0)
    assert not running.is_alive()
    assert reflector.failure is None


def test_objects_without_a_namespace_belong_to_none(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    server.put("nodes", "", "n1", {"zone": "a"})
    reflector = MetadataReflector(client, NODES, ObjectIndex(), SETTINGS)
    tasks.start("watch nodes", reflector.run)
    until(lambda: reflector.synced)
    assert reflector.index.names(None, EVERYTHING) == ("n1",)
    assert reflector.index.namespaces() == ()
