from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import ClusterNode
from adapter.foundation.web.http import Request
from adapter.nodes.hotspots.hot_nodes import HeatState, advance
from adapter.nodes.hotspots.hotspots_page import hotspots_routes
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import HotspotSettings
from tests.adapter.nodes.extender.snapshots import NAN, WINDOW_END, at, load, nodes_snapshot, snapshot
from tests.adapter.nodes.hotspots.pods import MIB, pod

if TYPE_CHECKING:
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot

CPU, MEMORY = LoadResource.CPU, LoadResource.MEMORY
SETTINGS = HotspotSettings({CPU: 0.8, MEMORY: 0.9}, rounds=2, clear=2)


def heat_of(*snapshots: NodesSnapshot) -> HeatState:
    """Return the state after these snapshots, 30 seconds apart."""
    state = HeatState()
    for number, each in enumerate(snapshots):
        assert each.loads is not None
        state = advance(state, at(each.loads, 30.0 * number), SETTINGS)
    return state


def hot(current: NodesSnapshot, heat: HeatState) -> list[dict[str, Any]]:
    """Return the hot nodes of the document."""
    (route,) = hotspots_routes(lambda: current, lambda: heat, SETTINGS)
    response = route.handle(Request("GET", "/hotspots"))
    document = json.loads(response.body)
    assert (response.status, document["kind"], document["apiVersion"]) == (200, "Hotspots", "tidewatch.io/v1alpha1")
    assert list(document)[:2] == ["apiVersion", "kind"]
    assert document["limit_ratio"] == {"cpu": 0.8, "memory": 0.9}
    assert current.loads is None or document["window_end"].endswith("Z")
    found: list[dict[str, Any]] = document["hot"]
    return found


def node(name: str, **conditions: str) -> ClusterNode:
    return ClusterNode(
        name, {}, (), unschedulable=False, conditions=conditions, created=None, capacity={}, allocatable={}
    )


def test_a_hot_node_is_shown_with_its_movable_pods() -> None:
    pods = [pod("db", 2000, 1024 * MIB, priority=9), pod("web", 300, 64 * MIB), pod("logs", 100, kind="DaemonSet")]
    current = nodes_snapshot({"cpu": [0.85, 0.5], "memory": [0.5, 0.5]}, pods_by_node={"node-1": pods})
    assert hot(current, heat_of(current, current)) == [
        {
            "node": "node-1",
            "reasons": ["cpu 15m average 85% over the limit 80% for 2 refreshes"],
            "utilization_ratio": {"cpu": 0.85, "memory": 0.5},
            "estimated": [],
            "rounds": 2,
            "excess": {"cpu": "200m"},
            "movable_pods": 2,
            "pods": [
                {
                    "namespace": "shop",
                    "name": "web",
                    "controller": "ReplicaSet/web",
                    "priority": 0,
                    "requests": {"cpu": "300m", "memory": "64Mi"},
                    "matches_excess": True,
                },
                {
                    "namespace": "shop",
                    "name": "db",
                    "controller": "ReplicaSet/web",
                    "priority": 9,
                    "requests": {"cpu": "2", "memory": "1Gi"},
                    "matches_excess": False,
                },
            ],
        }
    ]


def test_an_excess_is_not_rounded_up_because_of_float_errors() -> None:
    current = nodes_snapshot({"cpu": [0.8750000000000006]})
    (found,) = hot(current, heat_of(current, current))
    assert found["excess"] == {"cpu": "300m"}


def test_one_refresh_over_the_limit_is_not_enough() -> None:
    current = nodes_snapshot({"cpu": [0.85]})
    assert hot(current, heat_of(current)) == []


def test_a_node_that_has_just_cooled_is_still_shown_without_an_excess() -> None:
    over, below = nodes_snapshot({"cpu": [0.85]}), nodes_snapshot({"cpu": [0.7]})
    (found,) = hot(below, heat_of(over, over, below))
    assert found["reasons"] == ["cpu 15m average 70% not yet long enough below the limit 80% for 3 refreshes"]
    assert found["excess"] == {}


def test_a_hot_node_whose_load_is_unknown_now_is_not_shown() -> None:
    over, unknown = nodes_snapshot({"cpu": [0.85]}), nodes_snapshot({"cpu": [NAN]})
    assert hot(unknown, heat_of(over, over, unknown)) == []


def test_an_estimate_neither_makes_a_node_hot_nor_keeps_it_hot() -> None:
    measured, estimated = (
        nodes_snapshot({"cpu": [0.9]}),
        nodes_snapshot({"cpu": [0.9]}, load(CPU, [0.9], estimated=[0])),
    )
    assert hot(estimated, heat_of(estimated, estimated)) == []
    assert hot(estimated, heat_of(measured, measured, estimated)) == []


def test_an_estimate_of_a_node_shown_for_another_reason_is_marked() -> None:
    current = nodes_snapshot(
        {"cpu": [0.9]},
        load(CPU, [0.9], estimated=[0]),
        nodes=[node("node-1", Ready="False")],
    )
    (found,) = hot(current, heat_of(current, current))
    assert found["estimated"] == ["cpu"]
    assert found["excess"] == {}


@pytest.mark.parametrize(
    ("conditions", "reasons"),
    [
        ({"Ready": "True", "MemoryPressure": "False"}, []),
        ({}, []),
        ({"Ready": "Unknown"}, ["the node is not ready (condition Ready is Unknown)"]),
        ({"Ready": "True", "DiskPressure": "True"}, ["the kubelet reports DiskPressure"]),
        (
            {"Ready": "False", "MemoryPressure": "True", "PIDPressure": "True"},
            [
                "the node is not ready (condition Ready is False)",
                "the kubelet reports MemoryPressure",
                "the kubelet reports PIDPressure",
            ],
        ),
    ],
)
def test_nodes_that_are_not_ready_or_under_pressure_are_shown_at_once(
    conditions: dict[str, str], reasons: list[str]
) -> None:
    current = nodes_snapshot({"cpu": [0.1]}, nodes=[node("node-1", **conditions)])
    assert [each["reasons"] for each in hot(current, HeatState())] == ([reasons] if reasons else [])


@pytest.mark.parametrize(("count", "reasons"), [(9, []), (10, ["10 of at most 10 pods, over 90%"])])
def test_a_node_that_is_almost_full_of_pods_is_shown(count: int, reasons: list[str]) -> None:
    pods = {"node-1": [pod(f"p{number}") for number in range(count)]}
    current = nodes_snapshot({"cpu": [0.1]}, most_pods=10, pods_by_node=pods)
    assert [each["reasons"] for each in hot(current, HeatState())] == ([reasons] if reasons else [])


def test_all_pods_that_match_the_excess_are_shown_and_otherwise_at_most_20() -> None:
    current = nodes_snapshot(
        {"cpu": [1.0]}, pods_by_node={"node-1": [pod(f"p{number:02}", 20) for number in range(60)]}
    )
    (found,) = hot(current, heat_of(current, current))
    assert (found["excess"], found["movable_pods"]) == ({"cpu": "800m"}, 60)
    assert len([1 for each in found["pods"] if each["matches_excess"]]) == 40
    idle = nodes_snapshot({"cpu": [0.1]}, most_pods=60, pods_by_node=current.pods_by_node)
    assert len(hot(idle, HeatState())[0]["pods"]) == 20


def test_before_the_first_data_nothing_is_hot() -> None:
    assert hot(dataclasses.replace(nodes_snapshot({"cpu": [0.9]}), loads=None), HeatState()) == []


def test_without_node_objects_the_nodes_of_the_loads_are_judged() -> None:
    alone = dataclasses.replace(
        nodes_snapshot({"cpu": []}), loads=snapshot(["10.0.0.1"], load(CPU, [0.9]), window_end=WINDOW_END)
    )
    (found,) = hot(alone, heat_of(alone, alone))
    assert (found["node"], found["excess"], found["pods"]) == ("10.0.0.1", {}, [])
