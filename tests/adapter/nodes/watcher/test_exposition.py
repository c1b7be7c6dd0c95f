from __future__ import annotations

import gzip

from prometheus_client.parser import text_string_to_metric_families

from adapter.foundation.files.gzip_format import text_of_pieces
from adapter.nodes.model.loads import LoadResource, LoadSnapshot, NodeVerdict, UnmappedSeries
from adapter.nodes.watcher.exposition import prepare_exposition
from tests.adapter.nodes.watcher.snapshots import NOTHING, WINDOW_END, Measured, snapshot_of

CPU, MEMORY, DISK = LoadResource.CPU, LoadResource.MEMORY, LoadResource.DISK
UNMAPPED = (UnmappedSeries("10.0.0.9:9100", {}, (CPU,), ""), UnmappedSeries("10.0.0.9:9100", {"job": "x"}, (CPU,), ""))
SNAPSHOT = snapshot_of(
    {
        'a"%s\\': {CPU: Measured(0.5, 0.25), MEMORY: Measured(0.000001), DISK: Measured(0.1)},
        "b": {CPU: Measured(0.5, is_estimated=True, verdict=NodeVerdict.STALE, sampled_at=WINDOW_END - 400)},
        "c": {CPU: NOTHING},
    },
    unmapped=UNMAPPED,
)


def samples_of(text: bytes) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def found_of(snapshot: LoadSnapshot = SNAPSHOT, now: float = WINDOW_END) -> dict[tuple[str, ...], float]:
    return samples_of(text_of_pieces(prepare_exposition(snapshot).pieces(now)))


def test_ratios_have_node_resource_window_and_statistic() -> None:
    found = {labels: value for labels, value in found_of().items() if labels[0] == "tidewatch_node_utilization_ratio"}
    name = "tidewatch_node_utilization_ratio"
    assert found[name, 'a"%s\\', "cpu", "15m", "avg"] == 0.5
    assert found[name, 'a"%s\\', "cpu", "5m", "std"] == 0.25
    assert found[name, 'a"%s\\', "memory", "10m", "max"] == 0.000001
    # Values that are unknown or estimated have no series, and disk is not among the resources by default.
    assert {(node, resource) for _, node, resource, *_ in found} == {
        ('a"%s\\', "cpu"),
        ('a"%s\\', "memory"),
    }


def test_other_resources_are_exposed_if_they_are_configured() -> None:
    found = samples_of(text_of_pieces(prepare_exposition(SNAPSHOT, (DISK,)).pieces(WINDOW_END)))
    assert {labels[2] for labels in found if labels[0] == "tidewatch_node_utilization_ratio"} == {"disk"}


def test_sample_ages_are_those_at_the_time_of_the_scrape() -> None:
    exposition = prepare_exposition(SNAPSHOT)
    for now, age in ((WINDOW_END, 3.0), (WINDOW_END + 60.5, 63.5), (WINDOW_END - 100, 0.0)):
        found = samples_of(text_of_pieces(exposition.pieces(now)))
        assert found["tidewatch_node_sample_age_seconds", 'a"%s\\'] == age
        assert ("tidewatch_node_sample_age_seconds", "c") not in found


def test_states_and_verdicts_are_counted() -> None:
    found = found_of()
    states = {labels[1]: value for labels, value in found.items() if labels[0] == "tidewatch_nodes"}
    assert states == {"known": 3, "unmapped": 1, "refused": 0, "stale": 1, "estimated": 1}
    verdicts = {labels[1:]: value for labels, value in found.items() if labels[0] == "tidewatch_node_verdicts"}
    assert {labels: value for labels, value in verdicts.items() if labels[0] == "cpu" and value} == {
        ("cpu", "fresh"): 1,
        ("cpu", "stale"): 1,
        ("cpu", "missing"): 1,
    }
    # A verdict that no node has is 0, so that an alert sees it begin.
    assert len(verdicts) == 3 * len(NodeVerdict)


def test_the_compressed_form_is_the_same_text() -> None:
    exposition = prepare_exposition(SNAPSHOT)
    assert gzip.decompress(exposition.gzipped(WINDOW_END)) == text_of_pieces(exposition.pieces(WINDOW_END))


def test_without_nodes_the_text_is_valid() -> None:
    text = text_of_pieces(prepare_exposition(snapshot_of({})).pieces(WINDOW_END))
    assert samples_of(text)["tidewatch_nodes", "known"] == 0
