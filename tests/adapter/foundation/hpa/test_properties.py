from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.hpa.arithmetic import Tolerances, quotient
from adapter.foundation.hpa.behaviour import limit_rate, stabilize
from adapter.foundation.hpa.evaluation import evaluate
from adapter.foundation.hpa.history import HpaHistory, PastRecommendation, ScaleEvent, change_since
from adapter.foundation.hpa.pods import PodState, PodUsage
from adapter.foundation.hpa.proposals import HpaWorkload, Totals
from adapter.foundation.hpa.replicas import average_replicas
from adapter.foundation.hpa.rules import Behaviour, PolicyType, ScalingPolicy, ScalingRules, SelectPolicy, Windows
from adapter.foundation.hpa.spec import AverageValue, ExternalMetric, HPASpec, Settings
from adapter.foundation.hpa.totals import average_value_replicas, value_replicas

NOW = 1000.0
LOAD = ExternalMetric("load", AverageValue(1000))
counts = st.integers(min_value=0, max_value=200)
usages = st.integers(min_value=0, max_value=10**9)
targets = st.integers(min_value=1, max_value=10**6)
tolerances = st.builds(Tolerances, st.sampled_from([0.0, 0.1, 0.5]), st.sampled_from([0.0, 0.1, 0.5]))
ages = st.floats(min_value=0.0, max_value=400.0)
policies = st.builds(ScalingPolicy, st.sampled_from(PolicyType), st.integers(1, 100), st.sampled_from([15, 60, 300]))
rules = st.builds(
    ScalingRules,
    st.lists(policies, min_size=1, max_size=3).map(tuple),
    st.sampled_from(SelectPolicy),
    st.sampled_from([None, 0, 60, 300]),
)
behaviours = st.builds(Behaviour, rules, rules)
events = st.lists(st.builds(ScaleEvent, st.integers(1, 50), ages.map(lambda age: NOW - age)), max_size=5).map(tuple)
recommendations = st.lists(st.builds(PastRecommendation, counts, ages.map(lambda age: NOW - age)), max_size=8).map(
    tuple
)
histories = st.builds(HpaHistory, recommendations, events, events)


@given(
    st.tuples(st.integers(0, 20), st.integers(0, 100)).map(lambda pair: (pair[0], pair[0] + pair[1] + 1)),
    counts,
    usages,
    st.none() | behaviours,
    histories,
)
def test_replicas_stay_between_minimum_and_maximum(
    bounds: tuple[int, int], current: int, load: int, behaviour: Behaviour | None, history: HpaHistory
) -> None:
    spec = HPASpec((LOAD,), bounds[1], bounds[0], behaviour)
    decision = evaluate(spec, HpaWorkload(current, current), [Totals((load,))], history, now=NOW)
    switched_off = current == 0 and bounds[0] > 0
    assert switched_off or bounds[0] <= decision.desired <= bounds[1]


@given(counts, counts, behaviours, histories)
def test_rate_limits_never_reverse_a_change_and_a_disabled_direction_does_not_change(
    current: int, desired: int, behaviour: Behaviour, history: HpaHistory
) -> None:
    allowed = limit_rate(current, desired, behaviour, history, NOW)
    assert allowed >= current if desired > current else allowed <= current
    direction = behaviour.scale_up if desired > current else behaviour.scale_down
    if direction.select is SelectPolicy.DISABLED:
        assert allowed == current


@given(st.integers(1, 200), st.lists(counts, min_size=1, max_size=30), st.integers(1, 20), st.sampled_from([15, 60]))
def test_no_change_within_a_period_exceeds_its_policy(start: int, wanted: list[int], value: int, period: int) -> None:
    only = ScalingRules((ScalingPolicy(PolicyType.PODS, value, period),), stabilization_window_seconds=0)
    spec = HPASpec((LOAD,), 1000, 1, Behaviour(only, only), Settings(tolerance=0.0))
    replicas, history, replicas_at = start, HpaHistory(), {0: start}
    for now, load in enumerate(wanted, start=1):
        decision = evaluate(spec, HpaWorkload(replicas, replicas), [Totals((load * 1000,))], history, now=now * 5.0)
        began = replicas_at[max(0, now - period // 5)]
        if decision.desired != replicas:
            change = decision.desired - began
            assert (change if decision.desired > replicas else -change) <= value
        replicas, history = decision.desired, decision.history
        replicas_at[now] = replicas


@given(counts, counts, st.builds(Windows, st.sampled_from([0.0, 60.0]), st.sampled_from([0.0, 300.0])), histories)
def test_stabilized_replicas_stay_between_the_current_and_the_desired_number(
    current: int, desired: int, windows: Windows, history: HpaHistory
) -> None:
    stable = stabilize(current, desired, windows, history, NOW)
    assert min(current, desired) <= stable.replicas <= max(current, desired)
    assert PastRecommendation(desired, NOW) in stable.history.recommendations
    assert len(stable.history.recommendations) <= len(history.recommendations) + 1


@given(st.lists(usages, min_size=1, max_size=8), targets, st.integers(0, 10**9), tolerances)
def test_more_usage_of_a_pod_never_leads_to_fewer_replicas(
    usage: list[int], target: int, more: int, tolerance: Tolerances
) -> None:
    # With as many pods as replicas: what the tolerance keeps then lies between what it lets through.
    current = len(usage)
    pods = [PodUsage(PodState.READY, milli) for milli in usage]
    busier = [PodUsage(PodState.READY, usage[0] + more), *pods[1:]]
    before = average_replicas(current, target, pods, tolerance).replicas
    assert average_replicas(current, target, busier, tolerance).replicas >= before


@given(st.integers(1, 50), usages, targets, st.integers(0, 10**9), tolerances)
def test_more_load_never_leads_to_fewer_replicas(
    current: int, usage: int, target: int, more: int, tolerance: Tolerances
) -> None:
    def by_value(load: int) -> int:
        return value_replicas(current, current, load, target, tolerance)

    def by_average(load: int) -> int:
        return average_value_replicas(current, load, target, tolerance).replicas

    assert by_value(usage + more) >= by_value(usage)
    assert by_average(usage + more) >= by_average(usage)


@given(st.integers(1, 8), st.lists(usages, min_size=1, max_size=6), targets)
def test_pods_without_samples_only_make_a_change_smaller(missing: int, usage: list[int], target: int) -> None:
    exact = Tolerances(0.0, 0.0)
    current = len(usage) + missing
    sampled = [PodUsage(PodState.READY, milli) for milli in usage]
    alike = [PodUsage(PodState.READY, sum(usage) // len(usage))] * missing
    known = average_replicas(current, target, [*sampled, *alike], exact).replicas
    found = average_replicas(current, target, [*sampled, *[PodUsage(PodState.MISSING)] * missing], exact).replicas
    assert min(known, current) <= found <= max(known, current)


@given(events, ages)
def test_the_change_of_a_period_is_the_sum_of_its_events(some: tuple[ScaleEvent, ...], age: float) -> None:
    recent = [event.change for event in some if event.at > NOW - age]
    assert change_since(some, NOW - age) == sum(recent)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**31))
def test_integers_divide_toward_zero(dividend: int, divisor: int) -> None:
    found = quotient(dividend, divisor)
    assert abs(found) == abs(dividend) // divisor
    assert found * dividend >= 0
