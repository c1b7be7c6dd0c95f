"""Entries with `clusterSize`: what can be combined with it, and what it means for the cluster."""

from __future__ import annotations

import pytest

from recommender.configuration.needs import config_maps_of, needs_of
from recommender.configuration.reading import read_configuration
from recommender.decisions.policy_settings import Output
from recommender.kinds.cluster_size.model.size_settings import BufferSettings, ClusterSizeSettings
from tests.recommender.configuration.files import TARGET, entry, problems_of, whole

STATIC = "clusterSize: {nodeGroups: [{name: a, max: 3, selector: {pool: a}}]}"
CLUSTER_API = "clusterSize: {nodeGroups: {clusterAPI: {namespaces: [capi]}}}"
PREDICTIVE = "predictive: {load: l, loadPerReplica: 1, horizon: 1m}"
PROMETHEUS = "prometheus: {url: 'http://p'}\n"


def test_the_buffer_of_an_entry_is_part_of_its_settings() -> None:
    lines = ("outputs: [metric, scale, capacityBuffer]", "capacityBuffer: {namespace: infra, name: reserve}")

    [found] = read_configuration(whole(entry("w", *lines, kind=CLUSTER_API)), "r.yaml").recommendations

    assert isinstance(found.subject, ClusterSizeSettings)
    assert found.subject.buffer == BufferSettings("infra", "reserve")
    assert found.policy.outputs == {Output.METRIC, Output.SCALE, Output.CAPACITY_BUFFER}


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ((f"targets: [{TARGET}]",), "r.yaml:6: clusterSize has no targets: it sizes its node groups: remove targets"),
        (
            ("outputs: [scale]",),
            (
                "r.yaml:6: the output scale needs node groups whose sizes can be written: those of `static` and "
                "`byLabel` can only be recommended: write nodeGroups: {clusterAPI: …} or {externalGRPC: …}, or remove "
                "scale"
            ),
        ),
        (
            ("outputs: [capacityBuffer]",),
            "r.yaml:6: the output capacityBuffer has no object: write capacityBuffer: {namespace, name}",
        ),
        (
            ("capacityBuffer: {namespace: a, name: b}",),
            "r.yaml:6: `capacityBuffer` has no effect without the output of this name: add it to outputs",
        ),
    ],
)
def test_settings_that_do_not_fit_a_cluster_size_are_refused(lines: tuple[str, ...], problem: str) -> None:
    assert problems_of(whole(entry("w", *lines, kind=STATIC))) == [problem]


def test_scale_with_only_a_plugin_is_refused_unless_the_plugin_writes() -> None:
    plugin = "clusterSize: {nodeGroups: {plugin: {name: cloud}}}"
    both = "clusterSize: {nodeGroups: {plugin: {name: cloud}, clusterAPI: {namespaces: [capi]}}}"

    [problem] = problems_of(whole(entry("w", "outputs: [scale]", kind=plugin)))

    assert problem == (
        "r.yaml:6: the output scale writes nothing through a plugin of node groups without `plugin.writes: true`: "
        "write nodeGroups: {clusterAPI: …} or {externalGRPC: …}, or remove scale"
    )
    assert problems_of(whole(entry("w", "outputs: [scale]", kind=both))) == []
    written = "clusterSize: {nodeGroups: {plugin: {name: cloud, writes: true}}}"
    assert problems_of(whole(entry("w", "outputs: [scale]", kind=written))) == []


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (entry("chat", kind=PREDICTIVE), None),
        (
            entry("chats", kind=PREDICTIVE),
            "r.yaml:6: `forecasts` names 'chat', which is no entry with predictive: did you mean chats?",
        ),
        (
            entry("chat"),
            (
                "r.yaml:6: `forecasts` names 'chat', which is proportional, which forecasts nothing: "
                "write the name of an entry with predictive"
            ),
        ),
    ],
)
def test_forecasts_must_name_predictive_entries(other: str, problem: str | None) -> None:
    kind = "clusterSize: {nodeGroups: {clusterAPI: {namespaces: [capi]}}, forecasts: [chat]}"

    found = problems_of(whole(other, entry("w", kind=kind), top=PROMETHEUS))

    assert [text.replace("r.yaml:7", "r.yaml:6") for text in found] == ([problem] if problem else [])


def test_cluster_sizes_need_nodes_pods_scheduling_constraints_and_objects_of_the_groups() -> None:
    configuration = read_configuration(whole(entry("w", kind=CLUSTER_API)), "r.yaml")

    needs = needs_of(configuration)

    assert (needs.nodes, needs.pods, needs.scheduling) == (True, True, True)
    assert {"machinedeployments", "machinesets", "machinepools"} <= {kind.resource for kind in needs.objects}


def test_priorities_of_cluster_autoscaler_are_read_only_for_the_priority_expander() -> None:
    by_size = read_configuration(whole(entry("w", kind=STATIC)), "r.yaml")
    by_priority = read_configuration(whole(entry("w", kind=STATIC.replace("}]}", "}], expander: priority}"))), "r.yaml")

    assert config_maps_of(by_size) == frozenset()
    assert config_maps_of(by_priority) == {("kube-system", "cluster-autoscaler-priority-expander")}
