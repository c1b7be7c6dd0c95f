from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.nodes.model.loads import LoadResource, NodeVerdict
from adapter.nodes.watcher.document import DIGITS, NodeTopology, decimal_text, decimal_texts
from adapter.nodes.watcher.prepared import prepare_watcher
from tests.adapter.nodes.watcher.snapshots import NAN, NOTHING, Measured, snapshot_of
from tests.support.trimaran_client import Seen, decoded_document, mean_and_deviation, peaks_cpu, target_load_packing_cpu

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.nodes.model.loads import LoadSnapshot

CPU, MEMORY = LoadResource.CPU, LoadResource.MEMORY
M15, M10, M5 = range(3)


def body_of(
    snapshot: LoadSnapshot, window: int = M15, topology: NodeTopology | None = None, *, estimates: bool = False
) -> bytes:
    return prepare_watcher(snapshot, topology or NodeTopology(), estimates=estimates).windows[window].whole.body


def entries_of(snapshot: LoadSnapshot, window: int = M15, *, estimates: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(body_of(snapshot, window, estimates=estimates))["data"]["NodeMetricsMap"]
    return found


def test_the_document_has_the_shape_of_load_watcher() -> None:
    snapshot = snapshot_of({"node-1": {CPU: Measured(0.425, 0.031), MEMORY: Measured(0.612)}})
    topology = NodeTopology({"node-1": "zone-a"}, {"node-1": 'batch "big"'})
    # Keys, their order and capitals as in facts of load-watcher's own encoder; `pool` and the names are ours.
    assert body_of(snapshot, topology=topology).decode() == (
        '{"timestamp":1700000905,"window":{"duration":"15m","start":1700000000,"end":1700000900},'
        '"source":"Prometheus","data":{"NodeMetricsMap":{"node-1":{"metrics":['
        '{"name":"tidewatch:node_cpu_utilization:ratio","type":"CPU","operator":"AVG","rollup":"15m","value":42.5},'
        '{"name":"tidewatch:node_cpu_utilization:ratio","type":"CPU","operator":"STD","rollup":"15m","value":3.1},'
        '{"name":"tidewatch:node_memory_utilization:ratio","type":"Memory","operator":"AVG","rollup":"15m",'
        '"value":61.2}],"tags":{},"metadata":{"dataCenter":"zone-a","pool":"batch \\"big\\"",'
        '"resolutionSeconds":15.0}}}}}'
    )


def test_every_plugin_reads_the_measured_values() -> None:
    found = decoded_document(
        body_of(snapshot_of({"a": {each: Measured(0.25, 0.125) for each in LoadResource}, "b": {CPU: Measured(0.5)}}))
    )
    assert {metric.type for metric in found.nodes["a"]} == {"CPU", "Memory", "Bandwidth", "Storage", "GPU"}
    assert target_load_packing_cpu(found.nodes["a"]) == Seen(is_valid=True, mean=25.0, deviation=0.0)
    assert peaks_cpu(found.nodes["b"]) == Seen(is_valid=True, mean=50.0, deviation=0.0)
    assert mean_and_deviation(found.nodes["a"], "Memory") == Seen(is_valid=True, mean=25.0, deviation=12.5)
    assert mean_and_deviation(found.nodes["b"], "Memory") == Seen(is_valid=False, mean=0.0, deviation=0.0)


@pytest.mark.parametrize(
    ("node", "types"),
    [
        pytest.param({CPU: NOTHING, MEMORY: Measured(0.5)}, None, id="no-cpu"),
        pytest.param({CPU: Measured(NAN, 0.1)}, None, id="deviation-without-average"),
        pytest.param({CPU: Measured(float("inf"))}, None, id="infinite"),
        pytest.param({CPU: Measured(-0.1)}, None, id="negative"),
        pytest.param({CPU: Measured(0.5, taken_from=(-1, -1, -1))}, None, id="from-no-window"),
        pytest.param({CPU: Measured(0.5, is_estimated=True)}, None, id="estimated"),
        pytest.param({CPU: Measured(0.5), MEMORY: Measured(NAN, 0.1)}, {"CPU"}, id="memory-without-average"),
        pytest.param({CPU: Measured(0.5), MEMORY: Measured(0.5, is_estimated=True)}, {"CPU"}, id="memory-estimated"),
        pytest.param({CPU: Measured(0.0, 0.0)}, {"CPU"}, id="really-idle"),
    ],
)
def test_an_unmeasured_resource_never_looks_idle(node: Mapping[LoadResource, Measured], types: set[str] | None) -> None:
    found = decoded_document(body_of(snapshot_of({"a": node, "b": {CPU: Measured(0.1)}}))).nodes
    assert "b" in found
    assert (None if "a" not in found else {metric.type for metric in found["a"]}) == types


@pytest.mark.parametrize("taken_from", [(0, 1, 2), (-1, -1, -1)])
def test_estimates_are_marked_if_they_are_enabled(taken_from: tuple[int, ...]) -> None:
    snapshot = snapshot_of(
        {"a": {CPU: Measured(0.5, is_estimated=True, taken_from=taken_from, verdict=NodeVerdict.STALE)}}
    )
    [metric] = entries_of(snapshot, M10, estimates=True)["a"]["metrics"]
    assert metric["name"] == "tidewatch:node_cpu_utilization:estimated_ratio"
    assert (metric["value"], metric["rollup"]) == (50.0, "10m")


def test_values_of_another_window_are_marked_and_the_document_keeps_the_requested_window() -> None:
    snapshot = snapshot_of({"a": {CPU: Measured(0.5, 0.1, taken_from=(2, 0, 2))}, "b": {CPU: Measured(0.2)}})
    rollups = {
        window: {name: {metric["rollup"] for metric in node["metrics"]} for name, node in entries.items()}
        for window in (M15, M10, M5)
        for entries in (entries_of(snapshot, window),)
    }
    assert rollups == {
        M15: {"a": {"5m"}, "b": {"15m"}},
        M10: {"a": {"15m"}, "b": {"10m"}},
        M5: {"a": {"5m"}, "b": {"5m"}},
    }
    windows = [decoded_document(body_of(snapshot, window)) for window in (M15, M10, M5)]
    assert [(found.duration, found.end - found.start) for found in windows] == [("15m", 900), ("10m", 600), ("5m", 300)]


def test_a_document_of_the_state_file_has_the_times_of_its_samples() -> None:
    found = decoded_document(body_of(snapshot_of({"a": {CPU: Measured(0.5)}}, from_file=True)))
    assert (found.timestamp, found.start, found.end) == (1_700_000_900, 1_700_000_000, 1_700_000_900)


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=8),
        st.tuples(st.one_of(st.just(NAN), st.floats(0, 1e3)), st.one_of(st.just(NAN), st.floats(0, 1))),
        max_size=4,
    )
)
def test_the_client_decodes_the_original_values_from_every_document(nodes: dict[str, tuple[float, float]]) -> None:
    snapshot = snapshot_of({name: {CPU: Measured(*found)} for name, found in nodes.items()})
    found = decoded_document(body_of(snapshot))
    served = {name: pair for name, pair in nodes.items() if not math.isnan(pair[0])}
    assert set(found.nodes) == set(served)
    for name, (average, deviation) in served.items():
        seen = mean_and_deviation(found.nodes[name], "CPU")
        assert seen.mean == pytest.approx(average * 100, abs=1e-6)
        assert seen.deviation == pytest.approx(0.0 if math.isnan(deviation) else deviation * 100, abs=1e-6)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0.0"), (100.0, "100.0"), (1e-06, "0.000001"), (9.9e-05, "0.000099"), (42.5, "42.5")]
)
def test_numbers_have_no_exponent(value: float, text: str) -> None:
    assert decimal_text(value) == text


@given(st.lists(st.floats(0, 1e300), max_size=5))
def test_many_numbers_are_formatted_like_single_ones(values: list[float]) -> None:
    numbers = np.array([round(value, DIGITS) for value in values], dtype=np.float64)
    assert decimal_texts(numbers) == [decimal_text(value) for value in numbers.tolist()]


def test_nodes_with_different_resources_do_not_affect_each_other() -> None:
    """An entry is put together from parts that most nodes share; each part must still be its own node's."""
    forms: list[Mapping[LoadResource, Measured]] = [
        {CPU: Measured(0.5, 0.1), MEMORY: Measured(0.2, 0.3)},
        {CPU: Measured(0.4)},
        {CPU: Measured(0.3, 0.2), MEMORY: NOTHING, LoadResource.DISK: Measured(0.1)},
        {CPU: Measured(1e-7, 0.0), MEMORY: Measured(0.6, taken_from=(1, 1, 1))},
        {CPU: NOTHING, MEMORY: Measured(0.6)},
    ]
    nodes = {f"100%s-{number}": forms[number % len(forms)] for number in range(200)}
    together = entries_of(snapshot_of(nodes))
    alone = {
        name: entry for name, form in nodes.items() for name, entry in entries_of(snapshot_of({name: form})).items()
    }
    assert together == alone
    assert len(together) == 160
