"""Recently bound pods add what the metrics cannot contain yet, and never more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.cluster.values.placed_pods import pods_by_place
from adapter.nodes.model.loads import WINDOWS_SECONDS, LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.placement.node_columns import ColumnsBuilder
from tests.adapter.nodes.placement.objects import END, MI, a_node, a_pod, loads, predicted, resources

if TYPE_CHECKING:
    from adapter.nodes.model.columns import NodeColumns
    from adapter.nodes.model.loads import LoadSnapshot

CPU, MEMORY, GPU = LoadResource.CPU, LoadResource.MEMORY, LoadResource.GPU
NODES = (a_node("a"), a_node("b"))
BOTH = loads({"a": 0.2, "b": 0.2})


def columns(load: LoadSnapshot | None, *ages: float, now: float = END, end: float = END) -> NodeColumns:
    """Return the columns with pods on node `a`, each bound so long before the end of the metrics."""
    pods = [
        a_pod(str(number), asks=resources("200m", "90Mi", limit="400m"), bound_at=end - age)
        for number, age in enumerate(ages)
    ]
    return ColumnsBuilder(SchedulingSettings(), predicted).build(NODES, pods_by_place(pods), load, now)


def test_predictions_count_pods_bound_after_the_window_or_less_than_a_minute_before() -> None:
    # tlp-d-recent-pod: bound 5 s after the end of the window, 50 s and 60 s before; limits of 400m.
    found = columns(BOTH, -5.0, 50.0, 60.0, now=END + 10.0)
    assert found.recent_cpu_prediction_milli.tolist() == [800.0, 0.0]


SHARES = {
    "bound after the end": (-5.0, 0, 1.0),
    "bound at the end": (0.0, 0, 1.0),
    "a tenth of 15 minutes ago": (90.0, 0, 0.9),
    "five minutes ago": (300.0, 0, 1 - 300 / 900),
    "almost 15 minutes ago": (899.0, 0, 1 - 899 / 900),
    "15 minutes ago": (900.0, 0, 0.0),
    "before the window": (901.0, 0, 0.0),
    "where 10 minutes stand in": (90.0, 1, 1 - 90 / 600),
    "where 5 minutes stand in": (150.0, 2, 0.5),
    "before the 5 minutes that stand in": (301.0, 2, 0.0),
    "where nothing is served": (150.0, -1, 1.0),
    "five minutes ago where nothing is served": (300.0, -1, 0.0),
}


@pytest.mark.parametrize(("age", "taken_from", "share"), SHARES.values(), ids=SHARES.keys())
def test_requests_are_added_for_the_part_that_the_average_cannot_contain(
    age: float, taken_from: int, share: float
) -> None:
    found = columns(loads({"a": 0.2, "b": 0.2}, taken_from=taken_from), age, now=END + 10.0)
    assert found.recent_requests[CPU].tolist() == pytest.approx([200 * share, 0])
    assert found.recent_requests[MEMORY].tolist() == pytest.approx([90 * MI * share, 0])
    assert found.recent_limits[CPU].tolist() == pytest.approx([400 * share, 0])
    assert found.recent_limits[MEMORY].tolist() == pytest.approx([90 * MI * share, 0])
    assert set(found.recent_requests) == set(LoadResource)


def test_after_a_restart_running_pods_are_not_recent() -> None:
    found = columns(BOTH, 3600.0, 86400.0)
    assert found.recent_cpu_prediction_milli.tolist() == [0.0, 0.0]
    assert found.recent_requests[CPU].tolist() == [0.0, 0.0]


def test_without_metrics_the_pods_of_the_last_five_minutes_are_recent() -> None:
    found = columns(None, 10.0, 200.0, 400.0)
    assert found.recent_requests[CPU].tolist() == [400.0, 0.0]
    assert found.recent_cpu_prediction_milli.tolist() == [400.0, 0.0]


def test_a_pod_that_an_estimate_contains_is_not_added_again() -> None:
    load = loads({"a": 0.2, "b": 0.2}, estimated=["a"], assembled_at=END + 20.0)
    found = columns(load, 50.0, -10.0, -25.0, now=END + 30.0)
    assert found.recent_requests[CPU].tolist() == [200.0, 0.0]
    assert found.recent_cpu_prediction_milli.tolist() == [400.0, 0.0]


def test_the_pods_of_a_node_without_load_are_not_judged_by_the_load_of_another_node() -> None:
    """A node that has just joined is not in the load yet, and all of its pods are recent."""
    known = loads({"b": 0.2, "c": 0.2}, taken_from=2, estimated=["c"], assembled_at=END + 20.0)
    found = columns(known, 150.0, now=END + 30.0)
    assert found.recent_requests[CPU].tolist() == [200.0, 0.0]
    assert columns(known, 50.0, now=END + 30.0).recent_cpu_prediction_milli.tolist() == [400.0, 0.0]


def test_a_pod_bound_in_the_future_counts_as_just_bound() -> None:
    assert columns(BOTH, -86400.0).recent_requests[CPU].tolist() == [200.0, 0.0]


@given(st.floats(-60.0, 1000.0), st.sampled_from([0, 1, 2]), st.floats(0.0, 1.0))
def test_measured_and_added_load_never_exceed_the_request_of_a_pod(age: float, taken_from: int, used: float) -> None:
    load = loads({"a": 0.0, "b": 0.0}, taken_from=taken_from)
    found = columns(load, age, now=END + 60.0)
    measured = 200.0 * used * min(max(age, 0.0) / WINDOWS_SECONDS[taken_from], 1.0)
    assert measured + found.recent_requests[CPU][0] <= 200.0 + 1e-6


@given(st.floats(-60.0, 1000.0), st.sampled_from([0, 1, 2]), st.floats(0.0, 1.0))
def test_the_average_of_five_minutes_and_what_is_added_to_it_are_never_more_than_the_pod_asks_for(
    age: float, taken_from: int, used: float
) -> None:
    load = loads({"a": 0.0, "b": 0.0}, taken_from=[[0, 0], [1, 1], [taken_from, taken_from]])
    found = columns(load, age, now=END + 60.0)
    measured = 200.0 * used * min(max(age, 0.0) / WINDOWS_SECONDS[taken_from], 1.0)
    assert measured + found.recent_usage_requests[CPU][0] <= 200.0 + 1e-6
    assert found.recent_usage_limits[CPU][0] == pytest.approx(2 * found.recent_usage_requests[CPU][0])


@given(st.floats(0.0, 1000.0))
def test_a_pod_that_uses_what_it_requests_is_counted_exactly_once(age: float) -> None:
    found = columns(BOTH, age)
    assert 200.0 * min(age / 900.0, 1.0) + found.recent_requests[CPU][0] == pytest.approx(200.0)
    assert 200.0 * min(age / 300.0, 1.0) + found.recent_usage_requests[CPU][0] == pytest.approx(200.0)
