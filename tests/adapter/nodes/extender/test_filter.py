from __future__ import annotations

import dataclasses
import math
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.cluster.values.placed_pods import pods_by_place
from adapter.nodes.extender.filter import failed_nodes
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.nodes_snapshot import NodesSnapshot
from adapter.nodes.model.scheduling_settings import FilterSettings, SchedulingSettings
from adapter.nodes.model.usage import USAGE_NAMES, UsageName
from adapter.nodes.placement.node_columns import ColumnsBuilder
from tests.adapter.nodes.extender.snapshots import GIB, NAN, load, nodes_snapshot, pending
from tests.adapter.nodes.placement.objects import END, a_node, a_pod, loads, predicted, resources

CPU, MEMORY, DISK, GPU = LoadResource.CPU, LoadResource.MEMORY, LoadResource.DISK, LoadResource.GPU
CPU_80 = FilterSettings({CPU: 0.8})


@pytest.mark.parametrize(
    ("ratio", "cpu_milli", "reason"),
    [
        (0.5, 400, ""),
        (0.7, 400, ""),
        (0.83, 200, "cpu 15m average 83 percent and this pod 5 percent over the limit 80 percent"),
        (0.7, 404, "cpu 15m average 70 percent and this pod 10.1 percent over the limit 80 percent"),
        (0.9, 0, "cpu 15m average 90 percent over the limit 80 percent"),
        (NAN, 4000, ""),
    ],
)
def test_a_node_fails_if_the_pod_would_put_it_over_the_limit(ratio: float, cpu_milli: int, reason: str) -> None:
    failed = failed_nodes(nodes_snapshot({"cpu": [ratio]}), pending(cpu_milli), ["node-1"], CPU_80)
    assert failed == ({"node-1": reason} if reason else {})


def test_the_peak_of_the_last_hour_has_its_own_limit() -> None:
    busy = nodes_snapshot({"cpu": [0.1, 0.1, 0.1]})
    peaks = {UsageName.CPU_1H: np.array([0.74, 0.5, NAN])}
    busy = dataclasses.replace(busy, columns=dataclasses.replace(busy.columns, measured_usage_ratio=peaks))
    found = failed_nodes(busy, pending(400), ["node-1", "node-2", "node-3"], FilterSettings(), {UsageName.CPU_1H: 0.75})
    assert found == {
        "node-1": "cpu 1h peak of five minutes 74 percent and this pod 10 percent over the limit 75 percent"
    }
    shorter = np.full(3, USAGE_NAMES.index(UsageName.CPU_5M), dtype=np.int8)
    young = dataclasses.replace(busy, columns=dataclasses.replace(busy.columns, usage_from={UsageName.CPU_1H: shorter}))
    found = failed_nodes(young, pending(400), ["node-1"], FilterSettings(), {UsageName.CPU_1H: 0.75})
    assert found["node-1"].startswith("cpu 5m average 74 percent and")


@pytest.mark.parametrize(("use", "request_cpus", "limit_cpus"), [("requests", "2", "4"), ("limits", "1", "2")])
def test_an_average_of_five_minutes_contains_more_of_a_recent_pod_than_one_of_fifteen(
    use: Literal["requests", "limits"], request_cpus: str, limit_cpus: str
) -> None:
    # Half of the CPUs count for the pod, and are used for all but a second of the five minutes.
    measured = loads({"a": 0.5 * 299 / 300})
    asked = resources(request_cpus, limit=limit_cpus)
    recent = pods_by_place([a_pod("one", asks=asked, bound_at=END - 299.0)])
    columns = ColumnsBuilder(SchedulingSettings(), predicted).build((a_node("a"),), recent, measured, END)
    settings, busy = FilterSettings(use=use), NodesSnapshot(columns, measured, "metrics")
    assert failed_nodes(busy, pending(400), ["a"], settings, {UsageName.CPU_5M: 0.61}) == {}
    assert failed_nodes(busy, pending(400), ["a"], settings, {UsageName.CPU_5M: 0.59}) == {
        "a": "cpu 5m average 49.8 percent, recently bound pods 0.2 percent and this pod 10 percent over the limit 59 "
        "percent"
    }


@pytest.mark.parametrize("age", [0.0, 299.0, 301.0, 600.0, 899.0, 901.0])
def test_a_node_that_a_pod_fills_to_its_limit_is_rejected_however_long_ago_that_was(age: float) -> None:
    # Three of four cores are requested and used; the average over 15 minutes shows the part since the pod came.
    measured = loads({"a": 0.75 * min(age / 900, 1.0)})
    there = pods_by_place([a_pod("one", asks=resources("3"), bound_at=END - age)])
    columns = ColumnsBuilder(SchedulingSettings(), predicted).build((a_node("a"),), there, measured, END)
    busy = NodesSnapshot(columns, measured, "metrics")
    assert failed_nodes(busy, pending(400), ["a"], CPU_80).keys() == {"a"}
    assert failed_nodes(busy, pending(200), ["a"], CPU_80) == {}


def test_recently_bound_pods_count_before_the_metrics_show_them() -> None:
    busy = nodes_snapshot({"cpu": [0.6, 0.6]}, recent_requests={CPU: [800.0, 0.0]})
    assert failed_nodes(busy, pending(200), ["node-1", "node-2"], CPU_80) == {
        "node-1": "cpu 15m average 60 percent, recently bound pods 20 percent and this pod 5 percent "
        "over the limit 80 percent"
    }


@pytest.mark.parametrize(
    ("limits", "fails"), [({}, False), ({"cpu": 100}, False), ({"cpu": 800}, False), ({"cpu": 1200}, True)]
)
def test_with_use_limits_a_pod_counts_by_its_limits_but_never_below_its_requests(
    limits: dict[str, int], *, fails: bool
) -> None:
    settings = FilterSettings({CPU: 0.8}, use="limits")
    busy = nodes_snapshot({"cpu": [0.5]}, recent_requests={CPU: [4000.0]}, recent_limits={CPU: [400.0]})
    assert bool(failed_nodes(busy, pending(400, limits=limits), ["node-1"], settings)) is fails


def test_each_resource_has_its_own_limit_and_all_reasons_are_named() -> None:
    settings = FilterSettings({CPU: 0.8, MEMORY: 0.9})
    failed = failed_nodes(nodes_snapshot({"cpu": [0.9], "memory": [0.85]}), pending(0, GIB), ["node-1"], settings)
    assert failed == {
        "node-1": "cpu 15m average 90 percent over the limit 80 percent; "
        "memory 15m average 85 percent and this pod 12.5 percent over the limit 90 percent"
    }


def test_limits_of_a_pool_replace_the_general_ones_of_the_same_resource() -> None:
    settings = FilterSettings({CPU: 0.8}, pools={"batch": {CPU: 0.95}, "db": {CPU: 0.5, MEMORY: 0.5}})
    names = ["node-1", "node-2", "node-3", "node-4"]
    busy = nodes_snapshot({"cpu": [0.9, 0.9, 0.6, 0.3], "memory": [0.6] * 4}, pools=["", "batch", "db", "db"])
    assert failed_nodes(busy, pending(), names, settings) == {
        "node-1": "cpu 15m average 90 percent over the limit 80 percent",
        "node-3": "cpu 15m average 60 percent over the limit 50 percent; "
        "memory 15m average 60 percent over the limit 50 percent",
        "node-4": "memory 15m average 60 percent over the limit 50 percent",
    }


@pytest.mark.parametrize(("gpus", "fails"), [(0, False), (1, True)])
def test_a_gpu_limit_applies_only_to_pods_that_request_gpus(gpus: int, *, fails: bool) -> None:
    failed = failed_nodes(nodes_snapshot({"gpu": [0.95]}), pending(gpus=gpus), ["node-1"], FilterSettings({GPU: 0.9}))
    assert bool(failed) is fails


def test_only_the_measured_load_counts_for_resources_that_pods_cannot_request() -> None:
    failed = failed_nodes(
        nodes_snapshot({"disk": [0.5, 0.95]}), pending(4000), ["node-1", "node-2"], FilterSettings({DISK: 0.9})
    )
    assert failed == {"node-2": "disk 15m average 95 percent over the limit 90 percent"}


@pytest.mark.parametrize("names", [[], ["nobody"], ["nobody", "node-1"]])
def test_an_unknown_node_is_accepted_whatever_the_load_of_others(names: list[str]) -> None:
    failed = failed_nodes(nodes_snapshot({"cpu": [0.1, 0.9]}), pending(4), [*names, "node-2"], CPU_80)
    assert list(failed) == ["node-2"]
    assert failed_nodes(nodes_snapshot({"cpu": [0.1, 0.9]}), pending(4), names, CPU_80) == {}


def test_a_load_that_reaches_the_limit_exactly_is_not_over_it() -> None:
    """Of floats, 0.1 + 0.2 is more than 0.3."""
    busy = nodes_snapshot({"cpu": [0.1]})
    assert failed_nodes(busy, pending(800), ["node-1"], FilterSettings({CPU: 0.3})) == {}
    assert failed_nodes(busy, pending(801), ["node-1"], FilterSettings({CPU: 0.3})).keys() == {"node-1"}


def test_a_resource_that_is_not_measured_rejects_no_node() -> None:
    assert failed_nodes(nodes_snapshot({"memory": [0.99]}), pending(4000), ["node-1"], CPU_80) == {}


def test_a_node_without_capacity_is_accepted() -> None:
    empty = nodes_snapshot({"cpu": [0.1]})
    columns = dataclasses.replace(empty.columns, capacity={"cpu": empty.columns.capacity["cpu"] * 0})
    assert failed_nodes(dataclasses.replace(empty, columns=columns), pending(4000), ["node-1"], CPU_80) == {}


def test_the_reason_names_the_window_of_the_number() -> None:
    failed = failed_nodes(nodes_snapshot({"cpu": [0.9]}, load(CPU, [0.9], window=2)), pending(), ["node-1"], CPU_80)
    assert failed == {"node-1": "cpu 5m average 90 percent over the limit 80 percent"}


def test_an_estimate_rejects_no_node_whatever_the_pod_requests() -> None:
    estimated = nodes_snapshot({"cpu": [1.0, 0.9]}, load(CPU, [1.0, 0.9], estimated=[0]))
    assert list(failed_nodes(estimated, pending(8000), ["node-1", "node-2"], CPU_80)) == ["node-2"]


def test_without_limits_every_node_is_accepted() -> None:
    assert failed_nodes(nodes_snapshot({"cpu": [1.0]}), pending(4000), ["node-1"], FilterSettings()) == {}


@given(
    st.lists(st.floats(0, 1) | st.just(NAN), min_size=1, max_size=8),
    st.integers(0, 4000),
    st.floats(0.01, 1),
)
def test_exactly_the_nodes_over_the_limit_fail(ratios: list[float], cpu_milli: int, limit: float) -> None:
    names = [f"node-{number + 1}" for number in range(len(ratios))]
    failed = failed_nodes(nodes_snapshot({"cpu": ratios}), pending(cpu_milli), names, FilterSettings({CPU: limit}))
    for name, ratio in zip(names, ratios, strict=True):
        over = ratio + cpu_milli / 4000 - limit
        if abs(over) > 1e-6 or math.isnan(ratio):
            assert (name in failed) is (over > 0)
