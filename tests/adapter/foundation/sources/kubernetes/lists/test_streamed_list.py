"""Pods are listed as a stream of events where the server can, and in pages everywhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.kubernetes.errors import ExpiredError, UnexpectedResponseError
from adapter.foundation.sources.kubernetes.lists.list_watch import ListWatch
from adapter.foundation.sources.kubernetes.lists.streamed_list import InitialEvents, NotStreamedError
from tests.adapter.foundation.sources.kubernetes.watches.reflecting import PODS, MetadataReflector, fill, pods
from tests.support.fake_apiserver import FakeApiServer, Fault
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec


@pytest.mark.parametrize("count", [0, 1, 7])
def test_no_pages_are_requested_from_a_server_that_streams(
    server: FakeApiServer, start: Callable[..., MetadataReflector], count: int
) -> None:
    server.streams = True
    names = fill(server, count)
    reflector = start()
    until(lambda: reflector.synced and bool(server.asked("watch", "pods")))
    assert pods(reflector) == names
    (request,) = server.asked("stream", "pods")
    assert request.query["resourceVersionMatch"] == "NotOlderThan"
    assert request.query["allowWatchBookmarks"] == "true"
    assert "resourceVersion" not in request.query
    assert not server.asked("list", "pods")
    assert server.asked("watch", "pods")[0].query["resourceVersion"] == str(server.store.version)
    server.put("pods", "shop", "web-99", {"app": "web"})
    until(lambda: "web-99" in pods(reflector))


def test_a_stream_is_tried_once_and_pages_are_requested_from_then_on(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    names = fill(server, 3)
    reflector = start()
    until(lambda: reflector.synced and bool(server.asked("watch", "pods")))
    assert pods(reflector) == names
    assert reflector.failure is None
    # An event shows that the watch is open; one that is only requested would miss its end.
    server.put("pods", "shop", "web-99", {"app": "web"})
    until(lambda: "web-99" in pods(reflector))
    server.compact()
    server.expire_watches()
    until(lambda: len(server.asked("list", "pods")) == 4)
    assert len(server.asked("stream", "pods")) == 1


@pytest.mark.parametrize("what", ["cut", "garbage", "status"])
def test_after_a_failed_stream_the_objects_are_listed_in_pages(
    server: FakeApiServer, start: Callable[..., MetadataReflector], what: str
) -> None:
    server.streams = True
    server.faults.append(Fault("stream", what, times=99))  # type: ignore[arg-type]  # one of its values
    names = fill(server, 3)
    reflector = start()
    until(lambda: reflector.synced)
    assert pods(reflector) == names


def test_objects_deleted_meanwhile_are_gone_after_the_next_stream(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    server.streams = True
    fill(server, 3)
    reflector = start()
    until(lambda: reflector.synced and bool(server.asked("watch", "pods")))
    server.stop()
    server.remove("pods", "shop", "web-01")
    server.compact()
    server.start()
    until(lambda: pods(reflector) == ("web-00", "web-02"))


END = b'{"type":"BOOKMARK","object":{"kind":"%b","metadata":{"resourceVersion":"%b","annotations":{%b}}}}'
ENDS = b'"k8s.io/initial-events-end":"true"'
ADDED = b'{"type":"ADDED","object":{"metadata":{"name":"web-0","namespace":"shop"}}}'


def test_only_events_before_the_end_of_the_initial_objects_count() -> None:
    events = InitialEvents(ListWatch(PODS))
    ends = END % (b"PartialObjectMetadata", b"7", ENDS)
    found = [(len(list(events.objects(lines))), events.version) for lines in ([ADDED, ADDED], [ADDED, ends, ADDED])]
    assert found == [(2, ""), (1, "7")]


@pytest.mark.parametrize(
    ("line", "error", "words"),
    [
        (END % (b"Pod", b"7", b""), NotStreamedError, "a bookmark that does not end"),
        (END % (b"Pod", b"7", ENDS.replace(b"true", b"false")), NotStreamedError, "a bookmark that does not end"),
        (ADDED.replace(b"ADDED", b"DELETED"), NotStreamedError, "an event of type 'DELETED'"),
        (END % (b"Node", b"7", ENDS), UnexpectedResponseError, "objects of kind 'Node', not Pod"),
        (END % (b"", b"7", ENDS), UnexpectedResponseError, "objects of kind '', not Pod"),
        (END % (b"Pod", b"0", ENDS), UnexpectedResponseError, "without a resourceVersion"),
        (b'{"type":"ERROR","object":{"kind":"Status","code":410}}', ExpiredError, "410"),
        (b'{"type":"ERROR","object":[]}', UnexpectedResponseError, "not an event"),
        (b"<html>", UnexpectedResponseError, "not an event"),
    ],
)
def test_an_event_that_does_not_belong_in_a_stream_is_an_error(line: bytes, error: type[Exception], words: str) -> None:
    events = InitialEvents(ListWatch(PODS))
    contents: list[msgspec.Raw] = []
    with pytest.raises(error, match=words):
        contents.extend(events.objects([line]))
    assert not contents
    assert events.version == ""
