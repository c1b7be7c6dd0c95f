"""New connections wait only while others need reserved threads, and never for good."""

from __future__ import annotations

import pytest

from adapter.foundation.service.server.connections.limited_work import LimitedWork

SHARE = 0.25


class Time:
    now = used_seconds = 0.0


@pytest.mark.parametrize(("is_limited", "pauses"), [(True, [False, True]), (False, [False, False])])
def test_accepting_pauses_only_while_others_need_reserved_threads(
    is_limited: bool,  # noqa: FBT001 - a column of the table
    pauses: list[bool],
) -> None:
    time = Time()
    work = LimitedWork(lambda: is_limited, SHARE, lambda: time.now, lambda: time.used_seconds)
    found = []
    for _ in pauses:
        with work.count_time():
            time.used_seconds += 0.06
        found.append(work.pause_seconds() > 0)
    assert found == pauses
    time.now += 0.02 / SHARE + 0.001
    assert work.pause_seconds() == 0, "who waits is accepted after the pause"
