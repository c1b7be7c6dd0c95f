from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL
from recommender.kinds.cluster_size.estimator.binpacking import estimate
from recommender.kinds.cluster_size.model.groups import NodeTemplate
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.cases import cases
from tests.recommender.kinds.cluster_size.estimator.clusters import (
    MANY,
    MIB,
    TEMPLATE,
    estimated,
    groups_of,
    snapshot_of,
    template_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo
    from tests.recommender.kinds.cluster_size.cases import Case


@pytest.mark.parametrize("case", cases("estimator"))
def test_the_estimate_equals_that_of_the_peer(case: Case) -> None:
    snapshot = snapshot_of(case.input["existing"])
    groups = groups_of(case.input["groups"], snapshot)
    found = estimate(
        snapshot,
        groups,
        template_of(case.input["template"]),
        name_prefix="new",
        max_nodes=case.input["max_nodes"] or MANY,
    )
    assert (found.node_count, len(found.pods)) == (case.expected["nodes"], case.expected["pods"])
    for index in case.expected.get("processed_groups", []):
        assert groups[index].pods == found.pods


@pytest.mark.parametrize(
    ("template", "group", "nodes", "pods"),
    [
        ({"mem_bytes": 2000 * MIB}, {"count": 10, "cpu_milli": 350, "mem_bytes": 1000 * MIB}, 5, 10),
        ({"cpu_milli": 10_000}, {"count": 20, "cpu_milli": 10, "mem_bytes": 100}, 2, 20),
        ({}, {"count": 8, "cpu_milli": 200, "mem_bytes": 1000, "host_port": 5555}, 8, 8),
    ],
    ids=["resources", "pods-of-a-node", "host-port"],
)
def test_the_estimate_follows_the_capacity_of_each_node(
    template: Mapping[str, Any], group: Mapping[str, Any], nodes: int, pods: int
) -> None:
    found = estimated(TEMPLATE | dict(template), [group])
    assert (found.node_count, len(found.pods)) == (nodes, pods)


def test_new_nodes_have_unique_names_and_hostnames(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = Snapshot([node("new-1")], [pod("there", node="new-1")])
    groups = groups_of([{"count": 2, "cpu_milli": 600, "mem_bytes": 100, "host_port": 80}], snapshot)
    template = template_of(TEMPLATE)
    seen: list[str] = []
    add_node = snapshot.add_node

    def seen_node(added: ClusterNode, pods: Iterable[ClusterPod] = ()) -> NodeInfo:
        seen.append(added.labels[HOSTNAME_LABEL])
        return add_node(added, pods)

    monkeypatch.setattr(snapshot, "add_node", seen_node)
    found = estimate(snapshot, groups, template, name_prefix="new", max_nodes=MANY)
    assert [each.name for each in found.new_nodes] == seen == ["new-0", "new-2"]


def test_the_estimate_leaves_the_snapshot_unchanged() -> None:
    snapshot = Snapshot([node("n")], [pod("there", node="n")])
    estimate(
        snapshot,
        groups_of([{"count": 3, "cpu_milli": 600, "mem_bytes": 100}], snapshot),
        NodeTemplate(node("template", cpu="1"), (pod("agent"),)),
        name_prefix="new",
        max_nodes=MANY,
    )
    assert list(snapshot.nodes) == ["n"]
    assert [key for info in snapshot.nodes.values() for key in info.pods] == [("default", "there")]


@pytest.mark.parametrize(
    ("max_nodes", "nodes", "is_limited"), [(MANY, 3, False), (3, 3, False), (2, 2, True), (0, 0, True)]
)
def test_the_estimate_states_the_limit_that_ended_it(max_nodes: int, nodes: int, is_limited: bool) -> None:  # noqa: FBT001 - a column of the table
    found = estimated(TEMPLATE, [{"count": 3, "cpu_milli": 600, "mem_bytes": 100}], max_nodes)
    assert found.node_count == nodes
    assert found.limit == (f"at most {max_nodes} nodes may be added" if is_limited else "")


@pytest.mark.parametrize(
    "case",
    [
        each
        for each in cases("estimation_limiter")
        if not any(row["duration_s"] for row in each.values[0].input["thresholds"])
    ],
)
def test_an_estimate_opens_as_many_nodes_as_the_limiter_of_the_peer_allows(case: Case) -> None:
    """A decision has no clock, so cases with a limit of time have no counterpart. Each `R` begins another estimate."""
    most = min((row["node_limit"] for row in case.input["thresholds"]), default=MANY)
    opened = [
        estimated(TEMPLATE, [{"count": len(steps), "cpu_milli": 600, "mem_bytes": 100}], most).node_count
        for steps in case.input["ops"].split("R")
    ]
    assert opened == [steps.count("A") for steps in case.input["ops"].split("R")]
    assert opened[-1] == case.expected["nodes"]


def test_small_pods_of_a_later_group_fill_nodes_after_the_limit() -> None:
    groups = [{"count": 5, "cpu_milli": 600, "mem_bytes": 100}, {"count": 9, "cpu_milli": 200, "mem_bytes": 100}]
    found = estimated(TEMPLATE, [*groups], 2)
    assert [len(each.pods) for each in found.new_nodes] == [3, 3]


def test_a_pod_that_does_not_fit_on_an_empty_node_leaves_it_to_the_next_group() -> None:
    groups = [{"count": 2, "cpu_milli": 1500, "mem_bytes": 0}, {"count": 2, "cpu_milli": 400, "mem_bytes": 0}]
    found = estimated(TEMPLATE, [*groups])
    assert [each.name for each in found.new_nodes] == ["new-0"]
    assert [each.name for each in found.pods] == ["group-1-0", "group-1-1"]


def test_pods_of_daemon_sets_take_resources_of_each_new_node() -> None:
    template = template_of(TEMPLATE)
    busy = replace(template, pods=(pod("agent", cpu="500m"), pod("logs", cpu="100m", namespace="kube-system")))
    snapshot = snapshot_of([])
    groups = groups_of([{"count": 4, "cpu_milli": 200, "mem_bytes": 0}], snapshot)
    assert estimate(snapshot, groups, busy, name_prefix="new", max_nodes=MANY).node_count == 2
