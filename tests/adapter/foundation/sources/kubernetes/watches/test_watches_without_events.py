"""What stands between may cut every watch, or keep its events back: then lists must show what has changed."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

import pytest

from tests.adapter.foundation.sources.kubernetes.watches.reflecting import SETTINGS, MetadataReflector, fill, pods
from tests.support.fake_apiserver import FakeApiServer, Fault
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

ALWAYS = 1_000_000
WITHOUT_EVENTS = {
    "cut": Fault("watch", "cut", times=ALWAYS),
    "nothing comes": Fault("watch", "silence", times=ALWAYS),
    "ended at once": Fault("watch", "garbage", body=b"", times=ALWAYS),
}


@pytest.mark.parametrize("fault", WITHOUT_EVENTS.values(), ids=WITHOUT_EVENTS.keys())
def test_changes_are_seen_although_no_watch_brings_them(
    server: FakeApiServer, start: Callable[..., MetadataReflector], fault: Fault
) -> None:
    fill(server, 2)
    server.faults.append(dataclasses.replace(fault))
    reflector = start(dataclasses.replace(SETTINGS, silence_seconds=0.2))
    until(lambda: pods(reflector) == ("web-00", "web-01"))
    server.remove("pods", "shop", "web-00")
    server.put("pods", "shop", "web-99")
    until(lambda: pods(reflector) == ("web-01", "web-99"))


def test_a_watch_that_is_cut_after_an_event_is_resumed(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    event = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}\n'
    for _ in range(4):
        server.faults.append(Fault("watch", "garbage", body=event % server.store.version))
    start()
    until(lambda: server.watching("pods"))
    assert [asked.query["limit"] for asked in server.asked("list", "pods")] == ["2"]


def test_objects_are_listed_once_after_watches_without_events_although_the_next_ones_are_refused(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    server.faults += [Fault("watch", "cut", times=2), Fault("watch", "status", code=429, times=4)]
    reflector = start()
    until(lambda: server.watching("pods") and reflector.failure is None)
    # After all other failures, only the current version was read.
    limits = [asked.query["limit"] for asked in server.asked("list", "pods")]
    assert limits == ["2", "1", "2", "1", "1", "1", "1"]


def test_a_watch_is_opened_after_those_without_events_although_the_list_is_refused(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    server.faults += [Fault("watch", "cut", times=2), Fault("list", "status", code=429, skip=2)]
    start()
    until(lambda: server.watching("pods"))
    # The second list is refused; then the current version is read.
    assert [asked.query["limit"] for asked in server.asked("list", "pods")] == ["2", "1", "2", "1"]


def test_quiet_watches_that_are_cut_after_a_while_are_mostly_resumed(
    server: FakeApiServer, start: Callable[..., MetadataReflector]
) -> None:
    later = 0.0
    server.faults.append(Fault("watch", "cut", times=ALWAYS))
    start(dataclasses.replace(SETTINGS, healthy_seconds=0.0, clock=lambda: time.monotonic() + later))

    def lists() -> int:
        return [asked.query["limit"] for asked in server.asked("list", "pods")].count("2")

    until(lambda: len(server.asked("watch", "pods")) >= 6)
    assert lists() == 1
    later = 120.0
    until(lambda: lists() == 2)
