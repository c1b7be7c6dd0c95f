"""Objects of one namespace do not use up the events of others."""

from __future__ import annotations

from adapter.foundation.time.clock import Clock
from recommender.outputs.event_limits import BURST, EventLimits


def test_events_of_a_busy_namespace_are_limited_and_those_of_others_and_of_the_file_are_not() -> None:
    counted: list[str] = []
    seconds = [0.0]
    limits = EventLimits(counted.append, Clock(monotonic=lambda: seconds[0], wall=lambda: 0.0))
    assert [limits.permits(f"shop/{place}") for place in range(BURST + 2)] == [True] * BURST + [False] * 2
    assert counted == ["dropped"] * 2
    assert limits.permits("team/web")
    assert all(limits.permits("dns") for _ in range(100))
    seconds[0] = 10.0
    assert [limits.permits("shop/web"), limits.permits("shop/web")] == [True, False]
