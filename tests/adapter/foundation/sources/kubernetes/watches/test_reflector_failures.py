"""Lists and watches that fail: known objects stay, and are up to date again afterwards."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from adapter.foundation.sources.kubernetes.errors import (
    ForbiddenError,
    ServerError,
    UnauthorizedError,
    UnexpectedResponseError,
    UnreachableError,
)
from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchMetrics, WatchTelemetry
from adapter.foundation.sources.kubernetes.lists.list_watch import WatchSettings, precedes
from adapter.foundation.sources.kubernetes.watches import collection_list
from adapter.foundation.sources.object_index import ObjectIndex
from adapter.foundation.time.backoff import Backoff
from tests.adapter.foundation.sources.kubernetes.watches.reflecting import (
    PODS,
    SETTINGS,
    MetadataReflector,
    fill,
    listed,
    pods,
)
from tests.support.fake_apiserver import FakeApiServer, Fault
from tests.support.waiting import until

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from tests.adapter.foundation.sources.kubernetes.conftest import Tasks


class Recording(WatchTelemetry):
    def __init__(self) -> None:
        self.failures: list[tuple[str, str]] = []

    def count_failure(self, resource: str, error: str) -> None:
        self.failures.append((resource, error))


ITEM_WITH_A_NUMBER = b'{"items":[{"metadata":{"name":"a","resourceVersion":"1","labels":{"a":1}}}]}'
NOT_A_LIST = b'{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}}'
AGAIN = b'{"items":[],"metadata":{"resourceVersion":"7","continue":"again"}}'
DEEP = b'{"items":[{"metadata":' + b"[" * 5000 + b"]" * 5000 + b'}],"metadata":{"resourceVersion":"7"}}'
NO_VERSION = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":""}}}\n'
NAMELESS = b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"9","labels":{"a":1}}}}\n'
UNKNOWN_EVENT = b'{"type":"NEWS","object":{"metadata":{"resourceVersion":"1"}}}\n'
ERROR_EVENT = b'{"type":"ERROR","object":{"code":500,"message":"etcd"}}\n'
FAILURES = {
    "list: 500": (Fault("list", "status", code=500), ServerError),
    "list: cut": (Fault("list", "cut"), UnreachableError),
    "list: no answer": (Fault("list", "hang"), UnreachableError),
    "list: no body": (Fault("list", "silence"), UnreachableError),
    "list: HTML": (Fault("list", "garbage"), UnexpectedResponseError),
    "list: a label that is a number": (Fault("list", "garbage", body=ITEM_WITH_A_NUMBER), UnexpectedResponseError),
    "list: no version": (Fault("list", "garbage", body=b'{"items":[],"metadata":{}}'), UnexpectedResponseError),
    "list: not UTF-8": (Fault("list", "garbage", body=b'{"items":[{"kind":"\xff"}]}'), UnexpectedResponseError),
    "list: nothing in it": (Fault("list", "garbage", body=b"{}"), UnexpectedResponseError),
    "list: one object": (Fault("list", "garbage", body=NOT_A_LIST), UnexpectedResponseError),
    "list: pages without end": (Fault("list", "garbage", body=AGAIN, times=2), UnexpectedResponseError),
    "list: nested": (Fault("list", "garbage", body=DEEP), UnexpectedResponseError),
    "watch: no version": (Fault("watch", "garbage", body=NO_VERSION), UnexpectedResponseError),
    "watch: an object without a name": (Fault("watch", "garbage", body=NAMELESS), UnexpectedResponseError),
    "watch: text": (Fault("watch", "garbage", body=b"not an event\n"), UnexpectedResponseError),
    "watch: unknown event": (Fault("watch", "garbage", body=UNKNOWN_EVENT), UnexpectedResponseError),
    "watch: error event": (Fault("watch", "garbage", body=ERROR_EVENT), ServerError),
    "watch: cut": (Fault("watch", "cut"), UnreachableError),
    "watch: no answer": (Fault("watch", "hang"), UnreachableError),
    "watch: 403": (Fault("watch", "status", code=403), ForbiddenError),
    "watch: 401": (Fault("watch", "status", code=401, times=2), UnauthorizedError),
}


def longest_waits(waits: list[float]) -> WatchSettings:
    """Return settings with which each wait is as long as it may be, ends at once, and is appended to `waits`."""

    def wait(stop: threading.Event, seconds: float) -> bool:
        waits.append(seconds)
        return stop.wait(0.001)

    return dataclasses.replace(SETTINGS, wait=wait, backoff=lambda: Backoff(uniform=lambda _least, most: most))


def metadata(name: str, label: str = '"web"', version: int = 2) -> str:
    fields = f'"name":"{name}","namespace":"shop","resourceVersion":"{version}"'
    return f'{{"metadata":{{{fields},"labels":{{"app":{label}}}}}}}'


def nested(name: str, version: int = 2) -> str:
    return metadata(name, version=version)[:-1] + f',"spec":{"[" * 9_000}{"]" * 9_000}}}'


UNREADABLE_ITEMS = {
    "null": ("null", "without a name"),
    "no metadata": ('{"kind":"Pod"}', "without a name"),
    "no name": ('{"metadata":{"namespace":"shop"}}', "without a name"),
    "an empty name": ('{"metadata":{"name":""}}', "without a name"),
    "a label that is a number": (metadata("odd", "1"), "shop/odd"),
    "a label that is null": (metadata("odd", "null"), "shop/odd"),
    "labels in a list": ('{"metadata":{"name":"odd","namespace":"shop","labels":[]}}', "shop/odd"),
    "a text": ('"odd"', "without a name"),
    "deeper than a decoder follows": (nested("odd"), "shop/odd"),
}


@pytest.mark.parametrize(("item", "named"), UNREADABLE_ITEMS.values(), ids=UNREADABLE_ITEMS.keys())
def test_an_unreadable_object_is_left_out_of_a_list_and_logged(
    server: FakeApiServer,
    start: Callable[..., MetadataReflector],
    caplog: pytest.LogCaptureFixture,
    item: str,
    named: str,
) -> None:
    server.faults.append(Fault("list", "garbage", body=listed(metadata("a"), item, metadata("z"))))
    registry = CollectorRegistry()
    # Only the first list has the broken object: on a crowded machine it must not be given up for another one.
    patient = dataclasses.replace(SETTINGS, silence_seconds=30.0)
    reflector = start(dataclasses.replace(patient, telemetry=WatchMetrics(registry, "tidewatch_adapter")))
    until(lambda: reflector.synced)
    assert pods(reflector) == ("a", "z")
    assert registry.get_sample_value("tidewatch_adapter_watch_unreadable_objects", {"resource": "pods"}) == 1.0
    (message,) = [message for message in caplog.messages if "is left out because it cannot be read" in message]
    assert named in message
    # Without a name there is no namespace either, so the object counts in each.
    elsewhere = 1 if named == "without a name" else 0
    assert [reflector.unreadable(one) for one in (None, "shop", "other")] == [1, 1, elsewhere]


def test_an_object_that_becomes_unreadable_is_left_out_until_it_is_readable(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    server.put("pods", "shop", "a", {"app": "web"})
    # Not older than the list: otherwise the next watch would report the readable object again.
    now = server.store.version
    events = [
        ("ADDED", metadata("b", version=now)),
        ("MODIFIED", metadata("a", "1", now)),
        ("ADDED", nested("c", now)),
    ]
    body = "".join(f'{{"type":"{kind}","object":{content}}}\n' for kind, content in events)
    server.faults.append(Fault("watch", "garbage", body=body.encode()))
    registry = CollectorRegistry()

    def left_out() -> float | None:
        return registry.get_sample_value("tidewatch_adapter_watch_unreadable_objects", {"resource": "pods"})

    # Only the first watch has the broken objects: on a crowded machine it must not be given up for another list.
    patient = dataclasses.replace(SETTINGS, silence_seconds=30.0)
    reflector = start(dataclasses.replace(patient, telemetry=WatchMetrics(registry, "tidewatch_adapter")))
    until(lambda: left_out() == 2.0 and pods(reflector) == ("b",))
    until(lambda: server.watching("pods"))
    server.put("pods", "shop", "a", {"app": "api"})
    until(lambda: left_out() == 1.0 and pods(reflector) == ("a", "b"))
    server.put("pods", "shop", "c")
    server.remove("pods", "shop", "c")
    until(lambda: left_out() == 0.0)
    assert len(server.asked("list", "pods")) == 1


@pytest.mark.parametrize(("fault", "failure"), FAILURES.values(), ids=FAILURES.keys())
def test_after_a_failure_all_objects_are_known_again(
    server: FakeApiServer, start: Callable[..., MetadataReflector], fault: Fault, failure: type[Exception]
) -> None:
    fill(server, 1)
    # The table is shared by all runs of this test, and a fault counts down.
    server.faults.append(dataclasses.replace(fault))
    telemetry = Recording()
    reflector = start(dataclasses.replace(SETTINGS, telemetry=telemetry))
    until(lambda: server.watching("pods") and reflector.failure is None)
    server.put("pods", "shop", "web-99")
    until(lambda: pods(reflector) == ("web-00", "web-99"))
    assert {resource for resource, _ in telemetry.failures} == {"pods"}
    assert {error for _, error in telemetry.failures} <= {
        failure.__name__,
        *(one.__name__ for one in failure.__subclasses__()),
    }
    assert telemetry.failures


def test_a_watch_on_a_dead_connection_is_resumed_where_it_was(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    server.faults.append(Fault("watch", "silence"))
    reflector = start(dataclasses.replace(SETTINGS, silence_seconds=0.3))
    until(lambda: len(server.asked("watch", "pods")) == 1)
    server.put("pods", "shop", "unheard")
    until(lambda: pods(reflector) == ("unheard",))
    # Nothing was listed again; only the current version was read.
    assert [asked.query["limit"] for asked in server.asked("list", "pods")] == ["2", "1"]
    assert reflector.failure is None


def test_a_connection_that_died_is_given_up_soon_after_the_first_bookmark_that_does_not_come() -> None:
    bookmarks_seconds = 60.0
    assert bookmarks_seconds < WatchSettings().silence_seconds <= 1.5 * bookmarks_seconds


def test_known_objects_survive_an_outage_and_are_updated_afterwards(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    fill(server, 2)
    reflector = start()
    until(lambda: server.watching("pods"))
    server.stop()
    until(lambda: isinstance(reflector.failure, UnreachableError))
    assert reflector.synced
    assert pods(reflector) == ("web-00", "web-01")
    server.remove("pods", "shop", "web-00")
    server.start()
    until(lambda: pods(reflector) == ("web-01",))
    until(lambda: reflector.failure is None)
    # The version was still known, so the watch went on. Nothing was listed again; only the current version was read.
    assert [asked.query["limit"] for asked in server.asked("list", "pods")] == ["2", "1"]


def test_a_server_that_was_restored_from_a_backup_is_listed_again(
    server: FakeApiServer, start: Callable[..., MetadataReflector], caplog: pytest.LogCaptureFixture
) -> None:
    fill(server, 1)
    restore = server.store.backup()
    for name in ("lost-0", "lost-1", "lost-2"):
        server.put("pods", "shop", name)
    reflector = start()
    until(lambda: server.watching("pods"))
    assert pods(reflector) == ("lost-0", "lost-1", "lost-2", "web-00")
    server.stop()
    until(lambda: isinstance(reflector.failure, UnreachableError))
    restore()
    server.put("pods", "shop", "new")
    server.start()
    until(lambda: pods(reflector) == ("new", "web-00"))
    until(lambda: server.watching("pods"))
    server.put("pods", "shop", "later")
    until(lambda: pods(reflector) == ("later", "new", "web-00"))
    (message,) = [message for message in caplog.messages if "as after a restore from a backup" in message]
    assert message.startswith("pods: the server is at version 1002, before 1004")


@pytest.mark.parametrize("code", [401, 429, 503])
def test_a_server_that_was_restored_while_it_refused_requests_is_listed_again(
    server: FakeApiServer, start: Callable[..., MetadataReflector], code: int
) -> None:
    fill(server, 1)
    restore = server.store.backup()
    server.put("pods", "shop", "lost")
    # A request whose credentials are refused is sent once more with those of now.
    server.faults.append(Fault("watch", "status", code=code, times=2 if code == 401 else 1))

    def wait(stop: threading.Event, seconds: float) -> bool:
        restore()
        return stop.wait(seconds)

    reflector = start(dataclasses.replace(SETTINGS, wait=wait, silence_seconds=60.0))
    until(lambda: pods(reflector) == ("web-00",))


def test_a_server_that_was_restored_while_the_watch_was_silent_is_listed_again(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    fill(server, 1)
    restore = server.store.backup()
    server.put("pods", "shop", "lost")
    server.faults.append(Fault("watch", "silence"))
    reflector = start(dataclasses.replace(SETTINGS, silence_seconds=0.5))
    until(lambda: reflector.synced)
    # Another server takes the place of this one, without the connection having been refused or reset.
    restore()
    until(lambda: pods(reflector) == ("web-00",))
    assert reflector.failure is None


@pytest.mark.parametrize(
    ("version", "other", "expected"),
    [("9", "10", True), ("10", "9", False), ("10", "10", False), ("", "10", False), ("a", "b", False)],
)
def test_versions_are_compared_as_numbers(version: str, other: str, expected: bool) -> None:  # noqa: FBT001 - a table
    assert precedes(version, other) is expected


@pytest.mark.parametrize(("code", "retry_after", "seconds"), [(429, "7", 7.0), (503, "300", 32.0)])
def test_retry_after_is_respected_within_limits(
    client: KubernetesClient, server: FakeApiServer, tasks: Tasks, code: int, retry_after: str, seconds: float
) -> None:
    waits: list[float] = []

    def wait(stop: threading.Event, seconds: float) -> bool:
        waits.append(seconds)
        return stop.wait(0.01)

    server.faults.append(Fault("list", "status", code=code, headers={"Retry-After": retry_after}))
    reflector = MetadataReflector(client, PODS, ObjectIndex(), dataclasses.replace(SETTINGS, wait=wait))
    tasks.start("watch pods", reflector.run)
    until(lambda: reflector.synced)
    assert seconds <= waits[0] <= seconds + 0.5


def test_a_server_that_ends_every_watch_at_once_gets_ever_fewer_requests(
    client: KubernetesClient, server: FakeApiServer, tasks: Tasks
) -> None:
    waits: list[float] = []
    server.faults.append(Fault("watch", "garbage", body=b"", times=8))
    settings = dataclasses.replace(longest_waits(waits), silence_seconds=5.0)
    reflector = MetadataReflector(client, PODS, ObjectIndex(), settings)
    tasks.start("watch pods", reflector.run)
    until(lambda: server.watching("pods"))
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_a_server_that_is_away_for_long_is_found_soon_after_its_return(
    client: KubernetesClient, server: FakeApiServer, tasks: Tasks
) -> None:
    waits: list[float] = []
    settings = longest_waits(waits)
    reflector = MetadataReflector(client, PODS, ObjectIndex(), settings)
    server.stop()
    tasks.start("watch pods", reflector.run)
    until(lambda: len(waits) >= 40)
    server.start()
    until(lambda: reflector.synced)
    assert waits[:5] == [0.5, 1.0, 2.0, 4.0, 8.0]
    # Many watches of many processes must not all come at the same moment.
    assert all(5.0 <= seconds <= 10.0 for seconds in waits[5:])
    assert len(set(waits[5:])) > 1


def test_a_server_that_refuses_everybody_after_its_return_is_asked_again_soon(
    client: KubernetesClient, server: FakeApiServer, tasks: Tasks
) -> None:
    waits: list[float] = []
    settings = longest_waits(waits)
    reflector = MetadataReflector(client, PODS, ObjectIndex(), settings)
    server.faults.append(Fault("list", "status", code=403, times=6))
    server.stop()
    tasks.start("watch pods", reflector.run)
    until(lambda: len(waits) >= 10)
    server.start()
    until(lambda: reflector.synced)
    # A refusal that lasts is asked about less and less often.
    assert waits[-6:] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]


def test_refusals_of_one_of_several_servers_do_not_reset_the_backoff(
    client: KubernetesClient, server: FakeApiServer, tasks: Tasks
) -> None:
    """One of two API servers behind an address is away; the other one refuses this kind for good."""
    waits: list[float] = []
    settings = longest_waits(waits)
    for _ in range(4):
        server.faults.append(Fault("list", "status", code=403))
        server.faults.append(Fault("list", "cut"))
    reflector = MetadataReflector(client, PODS, ObjectIndex(), settings)
    tasks.start("watch pods", reflector.run)
    until(lambda: len(waits) >= 8)
    assert waits[:4] == [0.5, 1.0, 2.0, 4.0]
    assert min(waits[4:8]) >= 4.0


def test_the_backoff_is_reset_after_a_healthy_watch(
    client: KubernetesClient, server: FakeApiServer, tasks: Tasks
) -> None:
    waits: list[float] = []
    settings = dataclasses.replace(longest_waits(waits), healthy_seconds=1e-9)
    server.faults.append(Fault("list", "status", times=3))
    reflector = MetadataReflector(client, PODS, ObjectIndex(), settings)
    tasks.start("watch pods", reflector.run)
    until(lambda: server.watching("pods"))
    server.faults.append(Fault("watch", "status", code=503))
    server.expire_watches()
    until(lambda: len(waits) == 5)
    assert waits == [0.5, 1.0, 2.0, 0.5, 1.0]


def test_a_list_with_too_many_pages_is_an_error(
    server: FakeApiServer, start: Callable[..., MetadataReflector], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection_list, "_MOST_PAGES", 3)
    fill(server, 9)
    reflector = start()
    until(lambda: "more than 3 pages" in str(reflector.failure))
    assert not reflector.synced


def test_a_refusal_stays_known_while_the_server_cannot_be_reached(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    server.faults += [Fault("list", "status", code=403), Fault("list", "cut", times=10_000)]
    reflector = start()
    until(lambda: isinstance(reflector.failure, UnreachableError))
    assert isinstance(reflector.refusal, ForbiddenError)
    server.faults.clear()
    until(lambda: reflector.synced and reflector.refusal is None)
