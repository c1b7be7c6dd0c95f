"""Complaints about load-watcher, and about its readers, that the documents of `/watcher` resolve."""

from __future__ import annotations

import json

import pytest

from adapter.foundation.time.clock import Clock
from adapter.foundation.web.http import Request, Response
from adapter.nodes.model.loads import LoadResource, LoadSnapshot, NodeVerdict, UnmappedSeries
from adapter.nodes.watcher.document import NodeTopology
from adapter.nodes.watcher.handlers import watcher_routes
from adapter.nodes.watcher.prepared import prepare_watcher
from tests.adapter.nodes.watcher.snapshots import NAN, WINDOW_END, Measured, snapshot_of
from tests.support.trimaran_client import decoded_document, mean_and_deviation

CPU, MEMORY = LoadResource.CPU, LoadResource.MEMORY
EXPIRED = Measured(NAN, taken_from=(-1, -1, -1), verdict=NodeVerdict.STALE)


def answer(snapshot: LoadSnapshot | None, path: str, query: str = "", age_seconds: float = 10.0) -> Response:
    prepared = None if snapshot is None else prepare_watcher(snapshot, NodeTopology())
    routes = watcher_routes(lambda: prepared, Clock(wall=lambda: WINDOW_END + age_seconds))
    [route] = [route for route in routes if route.path == path]
    return route.handle(Request("GET", path, query))


def test_a_host_name_that_is_not_a_node_name_is_listed_with_its_repair_and_not_served__load_watcher_35() -> None:
    series = UnmappedSeries("worker-1.corp.example:9100", {}, (CPU,), "Add the address to the Node object.")
    snapshot = snapshot_of({"worker-2": {CPU: Measured(0.5)}}, unmapped=(series,))
    assert set(decoded_document(answer(snapshot, "/watcher").body).nodes) == {"worker-2"}
    [item] = json.loads(answer(snapshot, "/nodes/unmapped").body)["items"]
    assert (item["instance"], item["fix"]) == (series.instance, series.fix)


def test_series_with_unexpected_labels_do_not_affect_others__load_watcher_83() -> None:
    series = UnmappedSeries("", {"host": 'a"b\n', "group": "x", "group_2": "y"}, (CPU, MEMORY), "Add `instance`.")
    snapshot = snapshot_of({"worker-2": {CPU: Measured(0.5)}}, unmapped=(series,))
    assert set(decoded_document(answer(snapshot, "/watcher").body).nodes) == {"worker-2"}
    assert json.loads(answer(snapshot, "/nodes/unmapped").body)["items"][0]["labels"] == dict(series.labels)


@pytest.mark.parametrize("node", [{CPU: Measured(0.5)}, {CPU: Measured(0.5, 0.1), MEMORY: Measured(NAN, 0.2)}])
def test_load_variation_risk_balancing_can_read_a_node_without_memory__scheduler_plugins_853(
    node: dict[LoadResource, Measured],
) -> None:
    metrics = decoded_document(answer(snapshot_of({"a": node}), "/watcher").body).nodes["a"]
    assert mean_and_deviation(metrics, "CPU").mean == 50.0
    assert not mean_and_deviation(metrics, "Memory").is_valid


def test_expired_metrics_are_left_out_and_are_an_error_if_none_is_left__koordinator_2076() -> None:
    one_left = snapshot_of({"expired": {CPU: EXPIRED}, "fresh": {CPU: Measured(0.5)}})
    assert set(decoded_document(answer(one_left, "/watcher").body).nodes) == {"fresh"}
    assert answer(snapshot_of({"expired": {CPU: EXPIRED}}), "/watcher").status == 503
    assert answer(one_left, "/watcher", age_seconds=3600.0).status == 503


def test_after_a_cold_start_a_shorter_window_is_served_and_named__koordinator_2231() -> None:
    assert answer(None, "/watcher").status == 503
    short = snapshot_of({"a": {CPU: Measured(0.5, taken_from=(2, 2, 2))}})
    found = decoded_document(answer(short, "/watcher").body)
    assert (found.duration, [metric.rollup for metric in found.nodes["a"]]) == ("15m", ["5m"])
