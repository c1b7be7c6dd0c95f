"""The survey counts the series, and finds their scrape intervals and recording rules."""

from __future__ import annotations

import pytest

from adapter.nodes.model.loads import LoadResource
from adapter.nodes.queries.expressions import PART_LABEL
from adapter.nodes.queries.series_survey import Survey, survey_of


def survey(**parts: float) -> Survey:
    return survey_of(({PART_LABEL: name.replace("_", ":")}, value) for name, value in parts.items())


@pytest.mark.parametrize(
    ("parts", "recorded"),
    [
        ({"exporters_cpu": 3.0, "rule_cpu": 3.0, "accounted_cpu": 3.0}, {LoadResource.CPU}),
        ({"exporters_cpu": 3.0, "rule_cpu": 2.0, "accounted_cpu": 3.0}, set()),
        ({"exporters_cpu": 3.0, "rule_cpu": 3.0}, set()),
        ({"exporters_memory": 3.0, "rule_memory": 4.0}, {LoadResource.MEMORY}),
        ({"rule_memory": 4.0}, {LoadResource.MEMORY}),
        ({"exporters_memory": 3.0, "rule_memory": 3.0, "recorded_memory": 20_000.0}, {LoadResource.MEMORY}),
        ({"exporters_memory": 3.0, "rule_memory": 3.0, "recorded_memory": 20_001.0}, set()),
        ({}, set()),
    ],
    ids=["all", "of a part of the nodes", "half of the pair", "more", "only rules", "others too", "a crowd", "nothing"],
)
def test_rules_are_used_where_they_cover_all_exporters(parts: dict[str, float], recorded: set[LoadResource]) -> None:
    assert survey(**parts).recorded == recorded


def test_the_size_of_queries_follows_from_the_number_of_series() -> None:
    found = survey(series_cpu=640.0, exporters_cpu=10.0)
    assert found.series[LoadResource.CPU] == 1280
    assert found.series[LoadResource.GPU] == 0
    assert found.most_series(LoadResource.CPU) == 40


def test_a_host_name_is_used_if_all_exporters_of_an_instance_agree() -> None:
    found = survey_of(
        ({PART_LABEL: "uname", "instance": instance, "nodename": name}, 1.0)
        for instance, name in (("a", "worker-1"), ("b", "x"), ("b", "y"))
    )
    assert found.unames == {"a": "worker-1"}


def test_scrape_intervals_are_by_instance() -> None:
    found = survey_of(
        ({PART_LABEL: "scrapes", "instance": instance}, scrapes) for instance, scrapes in (("a", 40.0), ("b", 10.0))
    )
    assert found.scrape_seconds == {"a": 15.0, "b": 60.0}
    assert found.longest_scrape_seconds == 60.0


def test_excess_exporters_count_neither_for_the_size_of_queries_nor_for_rules() -> None:
    ours, evil = {"job": "node-exporter"}, {"job": "pods", "namespace": "evil"}
    found = survey_of(
        [
            ({PART_LABEL: "series:cpu", **ours}, 640.0),
            ({PART_LABEL: "series:cpu", **evil}, 1e6),
            ({PART_LABEL: "exporters:cpu", **ours}, 10.0),
            ({PART_LABEL: "exporters:cpu", **evil}, 1e5),
            ({PART_LABEL: "rule:cpu", **evil}, 1e5),
            ({PART_LABEL: "accounted:cpu", **evil}, 1e5),
        ],
        nodes=10,
    )
    assert (found.series[LoadResource.CPU], found.exporters[LoadResource.CPU]) == (1280, 10)
    assert not found.recorded
    assert found.matchers(LoadResource.CPU, {"cluster": "a"}) == ('cluster="a"', 'job!="pods"')
    assert found.matchers(LoadResource.MEMORY, {}) == ()


def test_excess_gpu_exporters_affect_only_their_own_namespace() -> None:
    """Recorded series of GPUs have no namespace, so the crowd could not be left out of them."""
    ours, evil = {"job": "pods", "namespace": "ours"}, {"job": "pods", "namespace": "evil"}
    found = survey_of(
        [
            ({PART_LABEL: "series:gpu", **ours}, 80.0),
            ({PART_LABEL: "series:gpu", **evil}, 1e6),
            ({PART_LABEL: "exporters:gpu", "job": "pods"}, 100_010.0),
            ({PART_LABEL: "sources:gpu", **ours}, 10.0),
            ({PART_LABEL: "sources:gpu", **evil}, 1e5),
            ({PART_LABEL: "rule:gpu", "job": "pods"}, 100_010.0),
        ],
        nodes=10,
    )
    assert (found.series[LoadResource.GPU], found.exporters[LoadResource.GPU]) == (160, 10)
    assert not found.recorded
    assert found.matchers(LoadResource.GPU, {}) == ('namespace!="evil"',)
