"""One object is watched by its name, as a role for this name allows; `serve` does so for the ConfigMap of its CAs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec
import pytest

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.errors import (
    ForbiddenError,
    KubernetesError,
    ServerError,
    UnexpectedResponseError,
)
from adapter.foundation.sources.kubernetes.lists.list_watch import WHOLE_OBJECTS, ListWatch, WatchSettings
from adapter.foundation.sources.kubernetes.watches.reflector import Reflector
from adapter.foundation.sources.stores import SingleObject
from adapter.foundation.time.backoff import Backoff
from adapter.metrics.identity.authentication_config_map import ConfigMap
from tests.support.fake_apiserver import FakeApiServer, Fault
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from tests.adapter.foundation.sources.kubernetes.conftest import Tasks

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"
WHICH = ListWatch(
    find_resource(BUILT_IN, "", "configmaps"), WHOLE_OBJECTS, NAMESPACE, field_selector=f"metadata.name={NAME}"
)


class Received:
    def __init__(self) -> None:
        self.contents: list[dict[str, str] | None] = []
        self.failed: list[KubernetesError] = []

    def receive(self, found: ConfigMap | None) -> None:
        self.contents.append(None if found is None else msgspec.json.decode(found.data))

    def last_is(self, data: dict[str, str] | None) -> Callable[[], bool]:
        return lambda: bool(self.contents) and self.contents[-1] == data


@pytest.fixture(name="received")
def _received(server: FakeApiServer, client: KubernetesClient, tasks: Tasks) -> Received:
    received = Received()
    settings = WatchSettings(
        window_seconds=(60.0, 60.0),
        silence_seconds=5.0,
        backoff=lambda: Backoff(longest_seconds=0.1),
        resumes=False,
    )
    watch = Reflector(client, WHICH, ConfigMap, SingleObject(NAME, received.receive), settings, received.failed.append)
    server.put_config_map(NAMESPACE, NAME, {"a": "1"})
    tasks.start("watch", watch.run)
    return received


def test_the_content_of_the_object_and_each_change_are_reported(server: FakeApiServer, received: Received) -> None:
    until(received.last_is({"a": "1"}))
    server.put_config_map(NAMESPACE, NAME, {"a": "2"})
    until(received.last_is({"a": "2"}))
    server.put_config_map(NAMESPACE, "another", {"a": "3"})
    server.put_config_map("default", NAME, {"a": "4"})
    server.remove("configmaps", NAMESPACE, NAME)
    until(received.last_is(None))
    server.put_config_map(NAMESPACE, NAME, {"a": "5"})
    until(received.last_is({"a": "5"}))
    assert {"a": "3"} not in received.contents
    assert {"a": "4"} not in received.contents
    assert received.failed == []
    assert {request.query["fieldSelector"] for request in server.requests} == {f"metadata.name={NAME}"}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault("list", "status", code=403, times=2), ForbiddenError),
        (Fault("list", "status", code=500, times=2), ServerError),
        (Fault("list", "garbage", times=2), UnexpectedResponseError),
        (Fault("list", "garbage", body=b'{"metadata": {}, "items": []}', times=2), UnexpectedResponseError),
        (
            Fault("list", "garbage", body=b'{"metadata": {"resourceVersion": "1"}, "items": [1]}'),
            UnexpectedResponseError,
        ),
        (Fault("list", "garbage", body=b'{"metadata": {"resourceVersion": "1"}}'), UnexpectedResponseError),
    ],
)
def test_a_list_that_cannot_be_read_is_reported_as_a_failure_and_tried_again(
    server: FakeApiServer, received: Received, fault: Fault, error: type[KubernetesError]
) -> None:
    until(lambda: server.watching("configmaps") == 1)
    server.faults.append(fault)
    server.expire_watches()
    until(lambda: received.failed)
    assert {type(one) for one in received.failed} == {error}
    server.put_config_map(NAMESPACE, NAME, {"a": "2"})
    until(received.last_is({"a": "2"}))


@pytest.mark.parametrize("what", ["cut", "garbage", "status"])
def test_a_broken_watch_is_followed_by_a_new_list(server: FakeApiServer, received: Received, what: str) -> None:
    until(lambda: server.watching("configmaps") == 1)
    server.faults.append(Fault("watch", what, times=2))  # type: ignore[arg-type] # one of the table's three
    server.expire_watches()
    server.put_config_map(NAMESPACE, NAME, {"a": "2"})
    until(received.last_is({"a": "2"}))
    until(lambda: server.watching("configmaps") == 1)


def test_without_resumption_each_watch_follows_a_list(server: FakeApiServer, received: Received) -> None:
    until(lambda: server.watching("configmaps") == 1)
    server.faults.append(Fault("watch", "cut"))
    server.stop()
    until(lambda: received.failed)
    server.start()
    # The connections of before may still count as watching, so the second list shows that the watch goes on.
    until(lambda: received.contents[-2:] == [{"a": "1"}, {"a": "1"}])
    until(lambda: server.watching("configmaps") == 1)
    until(lambda: len(server.asked("list", "configmaps")) == len(server.asked("watch", "configmaps")))


def test_the_watch_ends_when_it_is_stopped(server: FakeApiServer, client: KubernetesClient) -> None:
    watch = Reflector(client, WHICH, ConfigMap, SingleObject(NAME, lambda _: None), WatchSettings())
    stop = threading.Event()
    thread = threading.Thread(target=watch.run, args=(stop,))
    thread.start()
    until(lambda: server.watching("configmaps") == 1)
    stop.set()
    thread.join(5.0)
    assert not thread.is_alive()
