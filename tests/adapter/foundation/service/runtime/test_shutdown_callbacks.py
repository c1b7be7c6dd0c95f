"""Callbacks at the end of a process are all called, whatever fails."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from adapter.foundation.service.runtime.shutdown_callbacks import begin_calling, call_all

if TYPE_CHECKING:
    import pytest

SECONDS = 20.0


def fail() -> None:
    raise ValueError("made up")


def test_the_last_callback_is_called_first_and_one_that_fails_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    called: list[str] = []
    call_all([lambda: called.append("first"), fail, lambda: called.append("last")])
    assert called == ["last", "first"]
    assert "a callback failed" in caplog.text


def test_the_caller_goes_on_while_callbacks_run() -> None:
    release = threading.Event()
    thread = begin_calling([lambda: _await(release)])
    assert thread is not None
    assert thread.is_alive()
    release.set()
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_callbacks_are_called_by_the_caller_if_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, a process on a node without free processes would end with its Lease, and without its memory."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    called: list[str] = []
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        assert begin_calling([lambda: called.append("called")]) is None
    assert called == ["called"]


def _await(release: threading.Event) -> None:
    assert release.wait(SECONDS)
