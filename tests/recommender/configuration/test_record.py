from __future__ import annotations

import pytest

from recommender.configuration.needs import needs_of
from recommender.configuration.reading import ConfigurationFileError, read_configuration

HEAD = "apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\nrecord: {}\nrecommendations:\n"
SIZES = "- {name: nodes, clusterSize: {nodeGroups: {byLabel: {key: pool}}}}\n"
TARGETS = "targets: [{kind: Deployment, namespace: a, name: b}]"
OTHER = f"- name: dns\n  {TARGETS}\n  proportional: {{linear: {{nodesPerReplica: 4}}}}\n"


def test_length_of_a_recording_is_read_and_no_further_facts_are_needed() -> None:
    found = read_configuration(HEAD.format("30d") + SIZES, "r.yaml")
    assert found.record_seconds == 30 * 86_400
    assert needs_of(found) == needs_of(read_configuration(HEAD.replace("record: {}\n", "") + SIZES, "r.yaml"))


@pytest.mark.parametrize(
    ("length", "entries", "problem"),
    [
        ("30d", OTHER, "there is none"),
        ("1h", SIZES, "write a duration"),
        ("long", SIZES, "is not a duration"),
    ],
)
def test_recording_with_an_invalid_length_or_without_entries_is_refused(
    length: str, entries: str, problem: str
) -> None:
    with pytest.raises(ConfigurationFileError, match=problem) as refused:
        read_configuration(HEAD.format(length) + entries, "r.yaml")
    assert str(refused.value).startswith("r.yaml:3")


def test_entry_with_an_error_does_not_refuse_the_recording_of_the_file() -> None:
    broken = "- {name: nodes, clusterSize: {nodeGroups: {byLabel: {key: pool}}, rounds: x}}\n"
    assert read_configuration(HEAD.format("30d") + broken, "r.yaml").record_seconds == 30 * 86_400
