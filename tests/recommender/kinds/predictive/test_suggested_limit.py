"""The largest size that the history of a load suggests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.predictive.predictive_settings import PredictiveSettings
from recommender.kinds.predictive.suggested_limit import largest_load_query, suggested_max_replicas

DAY_SECONDS = 86_400.0


@given(st.floats(0, 1e308), st.floats(1e-6, 1e15), st.floats(1, 1000), st.integers(0, 2**31 - 1))
def test_the_suggested_limit_is_a_valid_size_and_serves_the_largest_forecast(
    largest: float, per_replica: float, ratio: float, least: int
) -> None:
    found = suggested_max_replicas(largest, per_replica, ratio, least)
    assert max(1, least) <= found <= 2**31 - 1
    assert found == 2**31 - 1 or found * per_replica >= largest * ratio * (1 - 1e-6)


@pytest.mark.parametrize(
    ("load", "history_days", "query"),
    [
        ("sum(x)", 14, "max(max_over_time((\nsum(x)\n)[14d:5m]))"),
        ("sum(x) # all of it", 1, "max(max_over_time((\nsum(x) # all of it\n)[1d:1m]))"),
        (None, 14, ""),
    ],
)
def test_the_whole_history_is_read_with_one_query(load: str | None, history_days: float, query: str) -> None:
    settings = PredictiveSettings(load=load, history_seconds=history_days * DAY_SECONDS)
    assert largest_load_query(settings) == query
