"""A next size that is reported as certain is right for every memory that the controller may have."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.hpa.evaluation import evaluate
from adapter.foundation.hpa.history import HpaHistory, PastRecommendation, ScaleEvent
from adapter.foundation.hpa.proposals import HpaWorkload, Totals
from adapter.foundation.hpa.rules import DEFAULT_SCALE_DOWN, DEFAULT_SCALE_UP, Behaviour, PolicyType, ScalingPolicy
from adapter.foundation.hpa.spec import AverageValue, ExternalMetric, HPASpec
from recommender.kubectl.why.next_sync import next_sync

NOW = 10_000.0
MOST = 30
policies = st.builds(
    ScalingPolicy, st.sampled_from(PolicyType), st.integers(1, 100), st.sampled_from([15, 60, 600])
).map(lambda one: (one,))
windows = st.sampled_from([0, 60, 300])
behaviours = st.builds(
    lambda up, down, up_window, down_window: Behaviour(
        replace(DEFAULT_SCALE_UP, policies=up, stabilization_window_seconds=up_window),
        replace(DEFAULT_SCALE_DOWN, policies=down, stabilization_window_seconds=down_window),
    ),
    policies,
    policies,
    windows,
    windows,
)
recommendations = st.lists(
    st.builds(PastRecommendation, st.integers(1, MOST), st.floats(NOW - 700, NOW)), min_size=1, max_size=5
)


@given(behaviours, st.integers(1, MOST), st.integers(0, 40), recommendations, st.integers(0, MOST), st.floats(0, 700))
def test_a_size_reported_as_certain_does_not_depend_on_the_controllers_memory(
    behaviour: Behaviour, current: int, load: int, past: list[PastRecommendation], change: int, changed_ago: float
) -> None:
    spec = HPASpec((ExternalMetric("queue", AverageValue(1000)),), MOST, behaviour=behaviour)
    workload, observed = HpaWorkload(current, current), [Totals((load * 1000,))]
    found = next_sync(spec, workload, observed, NOW - changed_ago, NOW)
    rising = load > current
    # A change that led to the current size began within the limits.
    made = (ScaleEvent(min(change, current if rising else MOST - current), NOW - changed_ago),)
    history = HpaHistory(tuple(past), *((made, ()) if rising else ((), made)))
    real = evaluate(spec, workload, observed, history, now=NOW).desired
    if found.is_certain:
        assert real == found.free.desired
    assert min(current, found.free.desired) <= real <= max(current, found.free.desired)


def test_the_next_size_is_certain_without_recent_changes_and_windows() -> None:
    quick = Behaviour(scale_down=replace(DEFAULT_SCALE_DOWN, stabilization_window_seconds=0))
    spec = HPASpec((ExternalMetric("queue", AverageValue(1000)),), MOST, behaviour=quick)
    found = next_sync(spec, HpaWorkload(4, 4), [Totals((2000,))], None, NOW)
    assert (found.is_certain, found.free.desired, found.wait_seconds) == (True, 2, 0.0)
