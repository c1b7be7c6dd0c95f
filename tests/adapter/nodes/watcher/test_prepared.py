from __future__ import annotations

import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from adapter.foundation.time.pace import Pace
from adapter.nodes.model.loads import LoadResource, UnmappedSeries
from adapter.nodes.watcher.document import NodeTopology
from adapter.nodes.watcher.prepared import prepare_watcher
from tests.adapter.nodes.watcher.snapshots import NOTHING, Measured, snapshot_of

CPU = LoadResource.CPU
MANY = snapshot_of(
    {f"n{number:03}": {CPU: NOTHING if number % 5 == 0 else Measured(number / 1000, 0.01)} for number in range(300)}
)


@pytest.mark.parametrize("window", range(3))
def test_the_compressed_form_is_the_same_document(window: int) -> None:
    whole = prepare_watcher(MANY, NodeTopology()).windows[window].whole
    assert whole.gzipped is not None
    assert gzip.decompress(whole.gzipped) == whole.body
    assert len(json.loads(whole.body)["data"]["NodeMetricsMap"]) == 240


def test_slices_of_any_length_give_the_same_bytes() -> None:
    paced = Pace(pause_seconds=0.0, sleep=lambda _seconds: None, clock=iter(range(10**6)).__next__)
    one_by_one = prepare_watcher(MANY, NodeTopology(), pace=paced).windows[0].whole
    assert one_by_one.body == prepare_watcher(MANY, NodeTopology()).windows[0].whole.body


def test_the_document_of_a_host_equals_the_whole_one_with_only_that_host() -> None:
    prepared = prepare_watcher(MANY, NodeTopology()).windows[1]
    whole = json.loads(prepared.whole.body)
    for number, name in enumerate(MANY.nodes):
        found = prepared.of_host(number)
        if name not in whole["data"]["NodeMetricsMap"]:
            assert found is None
            continue
        assert found is not None
        assert json.loads(found.body) == {
            **whole,
            "data": {"NodeMetricsMap": {name: whole["data"]["NodeMetricsMap"][name]}},
        }


def test_the_etag_changes_only_with_the_content() -> None:
    def tag(average: float) -> str:
        snapshot = snapshot_of({"a": {CPU: Measured(average)}})
        return dict(prepare_watcher(snapshot, NodeTopology()).windows[0].whole.headers)["ETag"]

    assert tag(0.5) == tag(0.5) != tag(0.25)


def test_unmapped_series_are_listed_with_the_repair() -> None:
    series = UnmappedSeries("10.0.0.1:9100", {"job": "node"}, (CPU, LoadResource.DISK), "Add the label `node`.")
    found = prepare_watcher(snapshot_of({}, unmapped=(series,)), NodeTopology()).unmapped
    assert json.loads(found.body) == {
        "apiVersion": "tidewatch.io/v1alpha1",
        "kind": "UnmappedSeries",
        "assembled_at": "2023-11-14T22:28:25Z",
        "jobs": [],
        "items": [
            {
                "instance": "10.0.0.1:9100",
                "labels": {"job": "node"},
                "resources": ["cpu", "disk"],
                "refused": "",
                "fix": "Add the label `node`.",
            }
        ],
    }


def test_a_window_is_prepared_on_its_first_request_and_in_advance_from_then_on() -> None:
    first = prepare_watcher(MANY, NodeTopology())
    assert first.windows.made_windows == (0,)
    requested = first.windows[2]
    assert first.windows[2] is requested
    second = prepare_watcher(MANY, NodeTopology(), first)
    assert second.windows.made_windows == (0, 2)
    assert second.windows[2].whole.body == requested.whole.body


def test_threads_that_request_a_window_at_once_get_the_same_one() -> None:
    windows = prepare_watcher(MANY, NodeTopology()).windows
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: windows[1], range(8)))
    assert all(one is found[0] for one in found)
