"""A list is logged when it says something new: at the start, and after a watch that was open."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.adapter.foundation.sources.kubernetes.watches.reflecting import MetadataReflector
    from tests.support.fake_apiserver import FakeApiServer


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
