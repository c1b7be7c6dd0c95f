"""A list is logged when it says something new: at the start, and after a watch that was open; a failure, once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tests.support.fake_apiserver import Fault
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.adapter.foundation.sources.kubernetes.watches.reflecting import MetadataReflector
    from tests.support.fake_apiserver import FakeApiServer

CUT = "watch of pods failed, will retry"
OPEN = "watch of pods is open again"
LISTED = "pods: 0 listed"


def of_watches(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the messages, without the one that says that this server does not stream lists."""
    return [message for message in caplog.messages if "is not streamed" not in message]


def test_lists_between_refused_watches_are_logged_once(
    server: FakeApiServer, start: Callable[..., MetadataReflector], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.forbidden.add(("watch", "pods"))
    reflector = start()
    until(lambda: len(server.asked("watch", "pods")) >= 4)
    server.forbidden.clear()
    until(lambda: reflector.synced and reflector.failure is None)
    texts = [message.partition(":")[2 if "listed" in message else 0] for message in caplog.messages]
    assert texts == ["watch of pods failed, will retry", " 0 listed", "watch of pods is open again"]


def test_the_list_after_a_version_that_expired_is_logged(
    server: FakeApiServer, start: Callable[..., MetadataReflector], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    reflector = start()
    until(lambda: server.watching("pods"))
    server.expire_watches()
    until(lambda: len(server.asked("list", "pods")) == 2)
    until(lambda: reflector.failure is None)
    assert [message for message in caplog.messages if "listed" in message] == ["pods: 0 listed"] * 2


def test_watches_that_are_opened_and_cut_at_once_are_one_failure_until_one_brings_something(
    server: FakeApiServer, start: Callable[..., MetadataReflector], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.faults.append(Fault("watch", "cut", times=10))
    start()
    until(lambda: server.watching("pods"))
    server.put("pods", "shop", "web-0")
    until(lambda: caplog.messages[-1] == OPEN)
    assert [message.partition(": GET")[0] for message in of_watches(caplog)] == [LISTED, CUT, OPEN, CUT, OPEN]


def test_a_server_that_is_away_is_logged_although_quiet_watches_were_cut_before(
    server: FakeApiServer, start: Callable[..., MetadataReflector], caplog: pytest.LogCaptureFixture
) -> None:
    server.faults += [Fault("watch", "cut", times=3), Fault("watch", "silence")]
    start()
    until(lambda: len(server.asked("watch", "pods")) == 4)
    before = [message.partition(": GET")[0] for message in of_watches(caplog)]
    server.stop()
    until(lambda: len(of_watches(caplog)) > len(before))
    assert before == [CUT, CUT], "at the first watch, and once more after the second one was opened"


def test_a_version_that_expires_again_and_again_is_no_failure_that_ends(
    server: FakeApiServer, start: Callable[..., MetadataReflector], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.faults.append(Fault("watch", "status", code=410, times=10))
    start()
    until(lambda: server.watching("pods"))
    assert of_watches(caplog) == [LISTED]
