"""Columns of nodes that are kept up to date equal columns that are made anew."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.placed_pods import PlacedPods, pods_by_place
from adapter.foundation.objects.pod_requests import ContainerSpec, PodSpecResources, pod_resources
from adapter.nodes.model.loads import MAX, LoadResource
from adapter.nodes.model.scheduling_settings import GpuSettings, SchedulingSettings
from adapter.nodes.model.usage import USAGE_NAMES, UsageName
from adapter.nodes.model.week import FORECAST_VERDICTS, ForecastVerdict, HourForecast
from adapter.nodes.model.workload import GpuPodKind
from adapter.nodes.placement.node_columns import ColumnsBuilder, requested_ratio
from adapter.nodes.placement.pod_times import last_changed_at
from tests.adapter.nodes.placement.objects import END, MI, a_node, a_pod, loads, predicted, resources

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from adapter.foundation.objects.pod_requests import PodResources
    from adapter.nodes.model.columns import NodeColumns

CPU, MEMORY, GPU = LoadResource.CPU, LoadResource.MEMORY, LoadResource.GPU
ZONE = "topology.kubernetes.io/zone"
NODES = (a_node("a", {ZONE: "z1", "pool": "p"}), a_node("b", nvidia_com_gpu="2"), a_node("c", {ZONE: "z1"}))


def builder() -> ColumnsBuilder:
    return ColumnsBuilder(SchedulingSettings(pool_label="pool", gpu=GpuSettings(allocation_annotation="g")), predicted)


def same(one: NodeColumns, other: NodeColumns) -> bool:
    for field in dataclasses.fields(one):
        if not field.compare:
            continue
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, np.ndarray):
            np.testing.assert_array_equal(left, right, field.name)
        elif isinstance(left, dict) and any(isinstance(value, np.ndarray) for value in left.values()):
            assert set(left) == set(right), field.name
            for name, column in left.items():
                np.testing.assert_array_equal(column, right[name], f"{field.name} {name}")
        else:
            assert left == right, field.name
    return True


def test_columns_have_the_capacity_of_nodes_and_the_requests_of_pods() -> None:
    pods = pods_by_place(
        [
            a_pod("one", asks=resources("500m", "1Gi", limit="2")),
            a_pod("two", asks=resources()),
            a_pod("gpu", "b", resources("1", "2Gi", gpus=1)),
            a_pod("elsewhere", "gone"),
        ]
    )
    found = builder().build(NODES, pods, None, END)
    assert (found.names, found.index) == (("a", "b", "c"), {"a": 0, "b": 1, "c": 2})
    assert found.capacity["cpu"].tolist() == [4000, 4000, 4000]
    assert found.allocatable["cpu"].tolist() == [3500, 3500, 3500]
    assert found.allocatable["nvidia.com/gpu"].tolist() == [0, 2, 0]
    assert found.requested["cpu"].tolist() == [500, 1000, 0]
    assert found.requested["nvidia.com/gpu"].tolist() == [0, 1, 0]
    assert found.requested["pods"].tolist() == [2, 1, 0]
    assert found.non_zero_requested["cpu"].tolist() == [600, 1000, 0]
    assert found.non_zero_requested["memory"].tolist() == [1224 * MI, 2048 * MI, 0]
    assert found.limits["cpu"].tolist() == [2000, 1000, 0]
    assert found.limits["memory"].tolist() == [1024 * MI, 2048 * MI, 0]
    assert (found.zone.tolist(), found.pool) == ([0, -1, 0], ("p", "", ""))
    assert found.gpu_left_milli == ((), (0, 1000), ())
    assert np.isnan(found.mean_ratio[CPU]).all()


def test_limits_and_requests_of_a_node_are_those_of_scheduler_plugins() -> None:
    # nrl-0 of pkg/trimaran/resourcestats_test.go at 903da7df: two pods of 1500m, whose limits are 2000m.
    pods = [a_pod(name, asks=resources("1500m", "3072", limit="2")) for name in ("one", "two")]
    found = builder().build(NODES, pods_by_place(pods), None, END)
    assert (found.requested["cpu"][0], found.limits["cpu"][0]) == (3000, 4000)
    assert (found.requested["memory"][0], found.limits["memory"][0]) == (6144, 6144)


def test_loads_are_in_the_order_of_the_nodes_and_nan_where_there_are_none() -> None:
    found = builder().build(NODES, PlacedPods(), loads({"c": 0.3, "a": 0.6, "zz": 0.9}), END)
    np.testing.assert_array_equal(found.mean_ratio[CPU], [0.6, np.nan, 0.3])
    np.testing.assert_array_equal(found.std_ratio[MEMORY], [0.05, np.nan, 0.05])
    assert np.isnan(found.mean_ratio[LoadResource.DISK]).all()


def test_without_node_objects_the_columns_are_those_of_the_loads() -> None:
    made = builder()
    assert len(made.build((), PlacedPods(), None, END).names) == 0
    found = made.build((), PlacedPods(), loads({"b": 0.3, "a": 0.6}), END)
    assert found.names == ("a", "b")
    assert found.mean_ratio[CPU].tolist() == [0.6, 0.3]
    assert found.capacity["cpu"].tolist() == [0, 0]
    assert (found.zone.tolist(), found.pool, found.gpu_left_milli) == ([-1, -1], ("", ""), ((), ()))


def test_columns_do_not_change_after_they_are_built() -> None:
    made = builder()
    first = made.build(NODES, pods_by_place([a_pod("one")]), None, END)
    made.build(NODES, pods_by_place([a_pod("one"), a_pod("two")]), None, END)
    assert (first.requested["cpu"][0], first.requested["pods"][0]) == (100, 1)


def test_a_resource_that_a_pod_invents_has_no_column_and_gpus_always_have_one() -> None:
    asks = pod_resources(PodSpecResources((ContainerSpec("c", {"example.com/invented": 1, "cpu": 1}),)))
    odd = a_pod("odd", asks=asks)
    found = builder().build(NODES[:1], pods_by_place([odd]), None, END)
    for columns in (found.requested, found.allocatable, found.capacity):
        assert set(columns) == {"cpu", "memory", "pods", "nvidia.com/gpu"}
    assert found.requested["cpu"].tolist() == [1000]


def test_a_node_that_states_millions_of_gpus_counts_as_one_with_1024() -> None:
    found = builder().build((a_node("a", nvidia_com_gpu="1e400"),), PlacedPods(), None, END)
    assert len(found.gpu_left_milli[0]) == 1024


def test_a_changed_node_keeps_its_sums_and_a_new_resource_gets_its_column() -> None:
    made = builder()
    pods = pods_by_place([a_pod("gpu", "b", resources("1", gpus=1))])
    made.build(NODES, pods, None, END)
    changed = (a_node("a", ephemeral="10Gi"), *NODES[1:])
    assert same(made.build(changed, pods, None, END), builder().build(changed, pods, None, END))


def test_an_invalid_annotation_is_reported_and_the_pod_counts_by_its_requests() -> None:
    made = builder()
    found = made.build(NODES, pods_by_place([a_pod("odd", "b", resources("1", gpus=1), gpus="7:500")]), None, END)
    assert found.gpu_left_milli[1] == (0, 1000)
    assert made.problems == ("Pod shop/odd: annotation of its GPUs: GPU 7 is not on a node of 2: the first one is 0",)
    made.build(NODES, PlacedPods(), None, END)
    assert not made.problems


def test_gpu_pods_are_counted_by_kind_and_pending_ones_at_most_as_often_as_bound_ones() -> None:
    single, double = resources("1", gpus=1), resources("2", gpus=2)
    bound = [a_pod("one", "b", single), a_pod("two", "c", single), a_pod("plain", "a", resources("1"))]
    shared = a_pod("shared", "b", resources("1", gpus=1), gpus="0:250,1:500")
    made = builder()
    found = made.build(NODES, pods_by_place([*bound, shared]), None, END).gpu_workload
    assert found == {GpuPodKind(1000, 1, 1000): 2, GpuPodKind(1000, 2, 500): 1}
    waiting = [a_pod(f"wait-{number}", "", double) for number in range(30)]
    assert (
        made.build(NODES, pods_by_place([*bound, *waiting[:1]]), None, END).gpu_workload[GpuPodKind(2000, 2, 1000)] == 1
    )
    assert made.build(NODES, pods_by_place([*bound, *waiting]), None, END).gpu_workload == {
        GpuPodKind(1000, 1, 1000): 2,
        GpuPodKind(2000, 2, 1000): 2,
    }
    assert builder().build(NODES, pods_by_place(waiting), None, END).gpu_workload == {GpuPodKind(2000, 2, 1000): 30}
    assert made.build(NODES, PlacedPods(), None, END).gpu_workload == {}


def test_requests_are_ratios_of_the_capacity() -> None:
    pods = pods_by_place([a_pod("one", asks=resources("1", "4Gi")), a_pod("gpu", "b", resources(gpus=1))])
    found = requested_ratio(builder().build(NODES, pods, None, END), ["nvidia.com/gpu"])
    np.testing.assert_array_equal(found[CPU], [0.25, 0, 0])
    np.testing.assert_array_equal(found[MEMORY], [0.5, 0, 0])
    np.testing.assert_array_equal(found[GPU], [np.nan, 0.5, np.nan])
    assert np.isnan(found[LoadResource.DISK]).all()


def test_each_node_has_the_time_of_its_last_bind_or_end() -> None:
    pods = PlacedPods({"a": (a_pod("one", bound_at=5.0), a_pod("two", bound_at=None))}, {}, {"a": 3.0, "b": 7.0})
    np.testing.assert_array_equal(last_changed_at(("a", "b", "c"), pods), [5.0, 7.0, np.nan])


def test_only_the_nodes_whose_pods_have_changed_are_computed_again() -> None:
    seen: list[PodResources] = []

    def counting(found: PodResources) -> float:
        seen.append(found)
        return predicted(found)

    made = ColumnsBuilder(SchedulingSettings(), counting)
    before = pods_by_place([a_pod(f"{node}-{number}", node, bound_at=END) for node in "abc" for number in range(4)])
    made.build(NODES, before, None, END)
    assert len(seen) == 12
    after = pods_by_place([*before.by_namespace["shop"], a_pod("new", "b", bound_at=END)]).reuse_tuples(before)
    assert made.build(NODES, after, None, END).requested["pods"].tolist() == [4, 5, 4]
    assert len(seen) == 12 + 5
    made.build(NODES, after, loads({"a": 0.5}), END + 30.0)
    assert len(seen) == 12 + 5


pods_of_one_moment = st.dictionaries(
    st.sampled_from("uvwxyz"),
    st.builds(
        lambda node, cpu, gpus, age: (node, resources(f"{cpu}m", limit="1", gpus=gpus), END - age),
        st.sampled_from(["a", "b", "c", "gone"]),
        st.integers(0, 5000),
        st.integers(0, 3),
        st.integers(-100, 1000),
    ),
    max_size=6,
)


@settings(max_examples=40)
@given(st.lists(st.tuples(pods_of_one_moment, st.booleans()), min_size=1, max_size=5))
def test_columns_that_are_kept_up_to_date_equal_new_ones(
    moments: list[tuple[dict[str, tuple[str, PodResources, float]], bool]],
) -> None:
    kept = builder()
    before = PlacedPods()
    for moment, has_loads in moments:
        pods: list[ClusterPod] = [
            a_pod(name, node, asks, bound_at=bound) for name, (node, asks, bound) in moment.items()
        ]
        before = pods_by_place(pods).reuse_tuples(before)
        load = loads({"a": 0.1, "c": 0.2}) if has_loads else None
        assert same(kept.build(NODES, before, load, END), builder().build(NODES, before, load, END))


@pytest.mark.parametrize("nodes", [(), NODES])
def test_empty_loads_are_treated_like_no_loads(nodes: tuple[ClusterNode, ...]) -> None:
    found = builder().build(nodes, pods_by_place([a_pod("one", bound_at=END)]), loads({}), END)
    assert np.isnan(found.mean_ratio[CPU]).all()


def test_each_usage_comes_from_the_longest_known_window() -> None:
    snapshot = loads({"a": 0.4, "b": 0.4})
    stats = np.full((5, 4, 2), np.nan)
    stats[:3] = snapshot.resources[CPU].stats
    stats[3, MAX] = [0.6, np.nan]
    long = dataclasses.replace(snapshot.resources[CPU], stats=stats)
    found = builder().build(NODES, pods_by_place([]), dataclasses.replace(snapshot, resources={CPU: long}), END)
    day = [number if number < 0 else USAGE_NAMES[number] for number in found.usage_from[UsageName.CPU_1D].tolist()]
    assert day == [UsageName.CPU_1H, UsageName.CPU_5M, -1]
    assert found.usage_ratio[UsageName.CPU_1D].tolist() == pytest.approx([0.6, 0.4, np.nan], nan_ok=True)
    assert found.usage_from[UsageName.MEMORY_5M].tolist() == [-1, -1, -1]


def test_the_next_hour_is_in_the_order_of_the_columns() -> None:
    verdict = FORECAST_VERDICTS.index(ForecastVerdict.PREDICTED)
    hour = HourForecast(np.array([0.7, 0.3]), np.array([verdict, verdict], dtype=np.int8))
    snapshot = dataclasses.replace(loads({"c": 0.4, "a": 0.2}), forecast=hour)
    found = builder().build(NODES, pods_by_place([]), snapshot, END).forecast
    assert found is not None
    assert found.ratio.tolist() == pytest.approx([0.7, np.nan, 0.3], nan_ok=True)
    assert FORECAST_VERDICTS[found.verdicts[1]] is ForecastVerdict.NO_LOAD
    assert builder().build(NODES, pods_by_place([]), loads({"a": 0.2}), END).forecast is None
