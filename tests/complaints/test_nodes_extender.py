"""Complaints of users about extenders, hot nodes, and descheduling by load."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.objects.pod_requests import ContainerResources, PodResources
from adapter.foundation.web.http import Request
from adapter.nodes.extender.handlers import Extender
from adapter.nodes.hotspots.descheduler_query import METRIC, query_routes
from adapter.nodes.hotspots.hot_nodes import HeatState, advance
from adapter.nodes.hotspots.hotspots_page import hotspots_routes
from adapter.nodes.hotspots.over_limits import hot_nodes
from adapter.nodes.model.columns import PendingPod
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import FilterSettings, HotspotSettings, PolicyName, SchedulingSettings
from adapter.nodes.watcher.document import NodeTopology
from adapter.nodes.watcher.prepared import prepare_watcher
from tests.adapter.nodes.extender.snapshots import GIB, NAN, WINDOW_END, at, nodes_snapshot
from tests.adapter.nodes.hotspots.pods import MIB, pod
from tests.support.trimaran_client import decoded_document, mean_and_deviation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.nodes.model.nodes_snapshot import NodesSnapshot

CPU, MEMORY = LoadResource.CPU, LoadResource.MEMORY
HOT = HotspotSettings({CPU: 0.8, MEMORY: 0.9}, rounds=3, clear=2)


def request_of(names: Sequence[str], *, scheduler_name: str = "default-scheduler", whole_nodes: bool = False) -> bytes:
    """Return ExtenderArgs as kube-scheduler sends them."""
    nodes = {
        "metadata": {},
        "items": [{"metadata": {"name": name}, "spec": {"podCIDR": "10.0.0.0/24"}} for name in names],
    }
    return json.dumps(
        {
            "Pod": {"metadata": {"name": "web-1"}, "spec": {"schedulerName": scheduler_name}},
            "Nodes": nodes if whole_nodes else None,
            "NodeNames": None if whole_nodes else names,
        }
    ).encode()


def asked(current: NodesSnapshot, path: str, body: bytes, settings: SchedulingSettings) -> Any:  # noqa: ANN401 # JSON
    """Return the extender's answer for a pod of 500 milli and 1 GiB."""

    def pending_of(raw: bytes) -> PendingPod:
        requests = {"cpu": 500, "memory": GIB}
        resources = PodResources(requests, {}, requests, (ContainerResources(500),))
        return PendingPod(scheduler_name=json.loads(raw)["spec"]["schedulerName"], resources=resources)

    (route,) = (each for each in Extender(lambda: current, pending_of, settings).routes() if each.path == path)
    response = route.handle(Request("POST", path, body=body))
    assert response.status == 200
    return json.loads(response.body)


def queried(current: NodesSnapshot, resource: str) -> tuple[int, dict[str, float]]:
    """Return the status and what the descheduler receives for each node."""
    (route,) = query_routes(lambda: current, lambda: WINDOW_END, HotspotSettings())
    query = f'query={METRIC}{{resource="{resource}",window="15m",stat="avg"}}'
    response = route.handle(Request("POST", "/api/v1/query", body=query.encode()))
    samples = json.loads(response.body).get("data", {"result": []})["result"]
    return response.status, {each["metric"]["instance"]: float(each["value"][1]) for each in samples}


def refreshed(*snapshots: NodesSnapshot) -> HeatState:
    """Return the state after these snapshots, 30 seconds apart."""
    state = HeatState()
    for number, each in enumerate(snapshots):
        assert each.loads is not None
        state = advance(state, at(each.loads, 30.0 * number), HOT)
    return state


def test_nodes_are_sent_by_name_and_answers_are_no_longer_than_requests__kubernetes_72634_121527() -> None:
    """Whole Node objects took the time: 6 MB for 500 nodes. `extender/test_over_http.py` tests 5,000 nodes."""
    names = [f"node-{number + 1}" for number in range(500)]
    body = request_of(names)
    settings = SchedulingSettings(filter=FilterSettings({CPU: 0.8}))
    current = nodes_snapshot({"cpu": [0.5] * 500})
    assert asked(current, "/scheduler/filter", body, settings)["NodeNames"] == names
    assert [each["Host"] for each in asked(current, "/scheduler/prioritize", body, settings)] == names
    assert len(body) < 10_000


@pytest.mark.parametrize("whole_nodes", [False, True])
def test_a_filter_answers_in_the_form_of_the_request__kubernetes_141781(*, whole_nodes: bool) -> None:
    """Whole nodes come back, so that a scheduler which continues with them misses nothing."""
    body = request_of(["node-1", "node-2"], whole_nodes=whole_nodes)
    answer = asked(
        nodes_snapshot({"cpu": [0.9, 0.1]}),
        "/scheduler/filter",
        body,
        SchedulingSettings(filter=FilterSettings({CPU: 0.8})),
    )
    if whole_nodes:
        assert answer["Nodes"]["items"] == [json.loads(body)["Nodes"]["items"][1]]
        assert answer["NodeNames"] is None
    else:
        assert (answer["Nodes"], answer["NodeNames"]) == (None, ["node-2"])


def test_an_extender_serves_only_its_profiles__enhancements_3527() -> None:
    settings = SchedulingSettings(filter=FilterSettings({CPU: 0.8}), scheduler_names=frozenset({"tidewatch"}))
    current = nodes_snapshot({"cpu": [0.9, 0.1]})
    names = ["node-1", "node-2"]
    ours, others = request_of(names, scheduler_name="tidewatch"), request_of(names)
    assert asked(current, "/scheduler/filter", ours, settings)["NodeNames"] == ["node-2"]
    assert asked(current, "/scheduler/filter", others, settings)["NodeNames"] == names
    assert asked(current, "/scheduler/prioritize", others, settings) == []


def test_a_configuration_without_effect_is_logged__scheduler_plugins_618(caplog: pytest.LogCaptureFixture) -> None:
    current = nodes_snapshot({"cpu": [NAN, NAN]}, basis="none")
    asked(current, "/scheduler/prioritize", request_of(["node-1", "node-2"]), SchedulingSettings())
    (logged,) = caplog.messages
    assert logged.startswith(f"the scores of {PolicyName.TARGET_LOAD_PACKING} were the same for all nodes of a request")


def test_the_descheduler_gets_the_measured_load__descheduler_225() -> None:
    assert queried(nodes_snapshot({"cpu": [0.83, 0.2]}), "cpu") == (200, {"node-1": 0.83, "node-2": 0.2})


def test_nodes_with_equal_requests_differ_by_their_real_load__kubernetes_12455() -> None:
    """A scheduler that counts only requests sees no difference between the three nodes."""
    current = nodes_snapshot({"cpu": [0.95, 0.3, 0.7], "memory": [0.4, 0.4, 0.4]})
    scores = asked(current, "/scheduler/prioritize", request_of(["node-1", "node-2", "node-3"]), SchedulingSettings())
    assert [each["Host"] for each in sorted(scores, key=lambda each: -each["Score"])] == ["node-2", "node-3", "node-1"]
    assert len({each["Score"] for each in scores}) == 3


def test_all_readers_get_the_measured_number_whatever_pods_request__descheduler_1734_909() -> None:
    current = nodes_snapshot({"cpu": [0.42], "memory": [0.873]})
    assert current.loads is not None
    assert current.columns.requested["memory"].tolist() == [0.0]
    prepared = prepare_watcher(current.loads, NodeTopology())
    metrics = decoded_document(prepared.windows[0].whole.body).nodes["node-1"]
    for resource, kind, measured in (("cpu", "CPU", 0.42), ("memory", "Memory", 0.873)):
        assert queried(current, resource) == (200, {"node-1": measured})
        assert mean_and_deviation(metrics, kind).mean == pytest.approx(100 * measured)


def test_prometheus_mode_gets_the_measured_nodes_and_never_an_empty_answer__descheduler_1646() -> None:
    assert queried(nodes_snapshot({"cpu": [0.83, NAN]}), "cpu") == (200, {"node-1": 0.83})
    assert queried(nodes_snapshot({"cpu": [NAN, NAN]}), "cpu") == (503, {})


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_each_resource_can_be_queried_and_any_makes_a_node_hot__descheduler_1833(resource: str) -> None:
    current = nodes_snapshot({"cpu": [0.95, 0.1], "memory": [0.1, 0.95]})
    assert queried(current, resource)[1] == (
        {"node-1": 0.95, "node-2": 0.1} if resource == "cpu" else {"node-1": 0.1, "node-2": 0.95}
    )
    assert [node.name for node in hot_nodes(current, refreshed(current, current, current), HOT)] == ["node-1", "node-2"]


def test_a_peak_of_one_refresh_makes_no_node_hot__descheduler_1092() -> None:
    calm, peak = nodes_snapshot({"cpu": [0.5]}), nodes_snapshot({"cpu": [1.0]})
    assert hot_nodes(peak, refreshed(calm, peak), HOT) == ()
    assert hot_nodes(peak, refreshed(calm, peak, peak, calm, peak), HOT) == ()


def test_a_node_that_is_to_lose_pods_gets_no_new_ones__descheduler_994() -> None:
    """In one snapshot, the hot node is the one that the filter rejects and that has the lowest score."""
    current = nodes_snapshot({"cpu": [0.9, 0.3]})
    (hot,) = hot_nodes(current, refreshed(current, current, current), HOT)
    settings = SchedulingSettings(filter=FilterSettings({CPU: 0.8}))
    body = request_of(["node-1", "node-2"])
    assert hot.name in asked(current, "/scheduler/filter", body, settings)["FailedNodes"]
    scores = {each["Host"]: each["Score"] for each in asked(current, "/scheduler/prioritize", body, settings)}
    assert (hot.name, scores["node-1"] < scores["node-2"]) == ("node-1", True)
    assert queried(current, "cpu")[1]["node-1"] == hot.utilization[CPU]


def test_a_large_pod_does_not_move_for_a_small_excess__descheduler_707_1695() -> None:
    """Once, the same large pods were moved again and again."""
    pods = [pod("large", 3000), pod("small", 300)]
    assert matching(nodes_snapshot({"cpu": [0.85]}, pods_by_node={"node-1": pods})) == ["small"]


def test_pods_that_match_the_excess_are_chosen__koordinator_1975() -> None:
    pods = [pod("a", 1000, 100 * MIB), pod("b", 500, 100 * MIB), pod("c", 450, 100 * MIB), pod("d", 100, 100 * MIB)]
    assert matching(nodes_snapshot({"cpu": [0.9]}, pods_by_node={"node-1": pods})) == ["c"]


def test_pods_that_could_move_are_named_with_their_controllers__descheduler_1262_919() -> None:
    current = nodes_snapshot({"cpu": [0.9]}, pods_by_node={"node-1": [pod("web-5d8f-x", 500)]})
    shown = first_hot(current)["pods"][0]
    assert (shown["namespace"], shown["name"], shown["controller"]) == ("shop", "web-5d8f-x", "ReplicaSet/web")


def test_a_node_is_hot_after_rounds_and_normal_after_rounds__koordinator_987_1053() -> None:
    over, under = nodes_snapshot({"cpu": [0.9]}), nodes_snapshot({"cpu": [0.5]})
    history = [over, over, over, under, under]
    found = [bool(hot_nodes(each, refreshed(*history[: number + 1]), HOT)) for number, each in enumerate(history)]
    assert found == [False, False, True, True, False]


def test_limits_differ_by_pool__koordinator_1430() -> None:
    settings = SchedulingSettings(filter=FilterSettings({CPU: 0.8}, pools={"batch": {CPU: 0.97}}))
    current = nodes_snapshot({"cpu": [0.82, 0.82]}, pools=["", "batch"])
    answer = asked(current, "/scheduler/filter", request_of(["node-1", "node-2"]), settings)
    assert answer["NodeNames"] == ["node-2"]
    assert answer["FailedNodes"] == {
        "node-1": "cpu 15m average 82 percent and this pod 12.5 percent over the limit 80 percent"
    }


def first_hot(current: NodesSnapshot) -> dict[str, Any]:
    """Return the first hot node of the document, after enough refreshes."""
    heat = refreshed(current, current, current)
    (route,) = hotspots_routes(lambda: current, lambda: heat, HOT)
    found: dict[str, Any] = json.loads(route.handle(Request("GET", "/hotspots")).body)["hot"][0]
    return found


def matching(current: NodesSnapshot) -> list[str]:
    """Return the pods that would have to leave the first hot node."""
    return [each["name"] for each in first_hot(current)["pods"] if each["matches_excess"]]
