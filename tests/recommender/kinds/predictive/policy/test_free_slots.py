"""Which pods have room for new connections, and which of them are full."""

from __future__ import annotations

import math

import pytest

from recommender.decisions.loads.load_inputs import PodConnections
from recommender.kinds.predictive.policy.free_slots import Slots, count_slots

LIMIT, STARTUP_SECONDS = 1000, 120.0


@pytest.mark.parametrize(
    ("connections", "is_ready", "unready_seconds", "slots"),
    [
        pytest.param(0.0, True, None, Slots(1000.0, 1, 0, 0), id="empty"),
        pytest.param(999.0, True, None, Slots(1.0, 1, 0, 0), id="one slot is left"),
        pytest.param(1000.0, True, None, Slots(0.0, 1, 1, 0), id="at its limit"),
        pytest.param(1200.0, True, None, Slots(0.0, 1, 1, 0), id="above its limit"),
        pytest.param(None, True, None, Slots(0.0, 1, 0, 1), id="ready without a sample"),
        pytest.param(math.nan, True, None, Slots(0.0, 1, 0, 1), id="ready with a sample that is no number"),
        pytest.param(950.0, False, 10.0, Slots(0.0, 1, 1, 0), id="not ready because it is full"),
        pytest.param(949.0, False, 10.0, Slots(0.0, 0, 0, 0), id="not ready, and starting with returning connections"),
        pytest.param(None, False, None, Slots(0.0, 0, 0, 0), id="not ready for an unknown time"),
        pytest.param(0.0, False, 240.0, Slots(0.0, 0, 0, 0), id="starting for twice the start-up time"),
        pytest.param(0.0, False, 241.0, Slots(0.0, 1, 0, 0), id="no longer expected to start"),
    ],
)
def test_a_pod_is_counted_by_its_readiness_and_its_connections(
    connections: float | None,
    *,
    is_ready: bool,
    unready_seconds: float | None,
    slots: Slots,
) -> None:
    pod = PodConnections(connections, is_ready=is_ready, unready_seconds=unready_seconds)
    assert count_slots([pod], LIMIT, STARTUP_SECONDS) == slots
