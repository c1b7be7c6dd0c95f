"""What-if questions change the cluster that is decided about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.foundation.cluster.values.state import ClusterPod, ClusterState, Observed, Unknown
from adapter.foundation.cluster.values.workloads import WorkloadFacts
from recommender.kinds.cluster_size.what_if.apply import cluster_under_assumptions
from recommender.kinds.cluster_size.what_if.model import Assumption, WhatIf, WhatIfError, parse_assumption
from tests.recommender.kinds.cluster_size.builders import controller, node, pod

HASH = {"pod-template-hash": "5d4f"}


def web(name: str, on: str = "", created: float = 0.0) -> ClusterPod:
    return pod(name, "1", node=on, namespace="shop", labels=HASH, controller="web-5d4f", created=created)


def workload(kind: str, name: str = "web", replicas: int | None = 3) -> WorkloadFacts:
    template = replace(pod("", "1", namespace="shop", labels={"app": name}), controller=None)
    return WorkloadFacts(kind, "shop", name, f"uid-of-{kind}-{name}", replicas, template)


DAEMON = pod("agent-x", node="n1", namespace="shop", controller=controller("agent", "DaemonSet"))
CLUSTER = ClusterState(
    nodes=Observed((node("n1"), node("n2")), 5.0),
    pods=Observed((web("web-a", "n1", 1.0), web("web-b", "n2", 2.0), web("web-c"), DAEMON), 5.0),
    workloads=Observed((workload("Deployment"), workload("DaemonSet", "agent", None), workload("Job", "sum")), 5.0),
)


def names(state: ClusterState) -> list[tuple[str, str]]:
    assert isinstance(state.pods, Observed)
    return [(each.name, each.node) for each in state.pods.value]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shop/web:40", Assumption("shop", "web", 40)),
        ("StatefulSet/shop/web:0", Assumption("shop", "web", 0, "StatefulSet")),
    ],
)
def test_an_assumption_is_read(text: str, expected: Assumption) -> None:
    assert parse_assumption(text) == expected


@pytest.mark.parametrize(
    "text", ["web:40", "shop/web", "shop/web:", "shop/web:-1", "a/b/c/d:1", "shop/web:99999999", ""]
)
def test_invalid_assumptions_are_errors(text: str) -> None:
    with pytest.raises(WhatIfError, match="write"):
        parse_assumption(text)


def test_added_pods_are_copies_of_the_template_with_the_owner_of_existing_pods() -> None:
    found = cluster_under_assumptions(CLUSTER, WhatIf((Assumption("shop", "web", 5),)))

    assert found.cluster.pods == CLUSTER.pods
    assert len(found.pods) == 2
    assert {each.labels["app"] for each in found.pods} == {"web"}
    assert {each.controller for each in found.pods} == {controller("web-5d4f")}
    assert len({each.name for each in found.pods}) == 2
    assert found.notes == ("Deployment shop/web has 5 pods instead of 3",)


@pytest.mark.parametrize(("replicas", "left"), [(2, ["web-a", "web-b"]), (1, ["web-a"]), (0, [])])
def test_pending_pods_are_removed_first_and_then_the_newest(replicas: int, left: list[str]) -> None:
    found = cluster_under_assumptions(CLUSTER, WhatIf((Assumption("shop", "web", replicas),)))

    assert [name for name, _ in names(found.cluster)] == [*left, "agent-x"]
    assert found.pods == ()


def test_a_pod_whose_creation_is_unknown_is_as_old_as_its_binding() -> None:
    pods = tuple(replace(web(name, "n1"), facts=None, bound_at=at) for name, at in (("web-a", 1.0), ("web-b", 2.0)))
    cluster = replace(CLUSTER, pods=Observed(pods, 5.0))
    found = cluster_under_assumptions(cluster, WhatIf((Assumption("shop", "web", 1),)))

    assert names(found.cluster) == [("web-a", "n1")]


def test_the_nomination_of_a_pod_of_a_removed_node_is_cleared() -> None:
    former = web("web-d", "n1")
    assert former.facts is not None
    former = replace(former, facts=replace(former.facts, nominated_node="n2"))
    found = cluster_under_assumptions(
        replace(CLUSTER, pods=Observed((former,), 5.0)), WhatIf(without_nodes=("n1",))
    ).cluster.pods
    assert isinstance(found, Observed)
    [moved] = found.value
    assert moved.facts is not None
    assert (moved.node, moved.facts.nominated_node) == ("", "")


def test_the_workload_has_the_assumed_number_of_replicas() -> None:
    found = cluster_under_assumptions(CLUSTER, WhatIf((Assumption("shop", "web", 7),))).cluster.workloads

    assert isinstance(found, Observed)
    assert [each.replicas for each in found.value] == [7, None, 3]


@pytest.mark.parametrize(
    ("assumption", "message"),
    [
        (Assumption("shop", "wbe", 1), r"there is no workload shop/wbe: did you mean shop/web\?"),
        (Assumption("shpo", "wbe", 1), r"there is no workload shpo/wbe: did you mean shop/web\?"),
        (Assumption("shop", "zzz", 1), "there is no workload shop/zzz: write a Deployment, StatefulSet or Job"),
        (Assumption("shop", "agent", 1), "a DaemonSet has one pod per node"),
        (
            Assumption("shop", "web", 1, "StatefulSet"),
            "there is no StatefulSet shop/web: did you mean Deployment/shop/web",
        ),
    ],
)
def test_a_workload_that_cannot_be_assumed_is_an_error(assumption: Assumption, message: str) -> None:
    with pytest.raises(WhatIfError, match=message):
        cluster_under_assumptions(CLUSTER, WhatIf((assumption,)))


@pytest.mark.parametrize("kind", ["", "Deployment", "deployment"])
def test_two_assumptions_for_one_workload_are_an_error(kind: str) -> None:
    first, second = Assumption("shop", "web", 5), Assumption("shop", "web", 6, kind)
    for both in ((first, second), (second, first)):
        message = f"--assume {both[1]}: the number of pods of this workload is given twice"
        with pytest.raises(WhatIfError, match=message):
            cluster_under_assumptions(CLUSTER, WhatIf(both))


def test_two_workloads_with_one_name_are_an_error_until_the_kind_is_given() -> None:
    twins = replace(CLUSTER, workloads=Observed((workload("Deployment"), workload("StatefulSet")), 5.0))

    with pytest.raises(WhatIfError, match="Deployment shop/web and StatefulSet shop/web: write which one"):
        cluster_under_assumptions(twins, WhatIf((Assumption("shop", "web", 5),)))
    assert len(cluster_under_assumptions(twins, WhatIf((Assumption("shop", "web", 5, "statefulset"),))).pods) == 5


def test_pods_of_a_removed_node_become_pending_except_those_of_daemon_sets() -> None:
    found = cluster_under_assumptions(CLUSTER, WhatIf(without_nodes=("n1",))).cluster

    assert isinstance(found.nodes, Observed)
    assert [each.name for each in found.nodes.value] == ["n2"]
    assert names(found) == [("web-a", ""), ("web-b", "n2"), ("web-c", "")]


def test_an_unknown_node_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(WhatIfError, match=r"--without-node n11: there is no such node: did you mean n1\?"):
        cluster_under_assumptions(CLUSTER, WhatIf(without_nodes=("n11",)))


def test_added_pods_are_unbound_and_have_unique_names() -> None:
    question = WhatIf(pods=(web("web-a", "n9"), web("new")), workloads=(workload("Deployment", "other", 2),))

    found = cluster_under_assumptions(CLUSTER, question)

    assert [(each.node, each.phase) for each in found.pods] == [("", "Pending")] * 4
    assert not {each.name for each in found.pods} & {"web-a", "web-b", "web-c"}
    assert found.notes == ("4 pods of --add-pods",)


def test_what_is_listed_beside_its_owner_counts_once() -> None:
    of_set = replace(pod("", "1", namespace="shop", labels=HASH), controller=controller("web-5d4f"))
    deployment = replace(workload("Deployment", "web", 2), template=of_set)
    replica_set = replace(workload("ReplicaSet", "web-5d4f", 2), template=of_set)
    former = replace(
        workload("ReplicaSet", "web-77aa", 1),
        template=replace(of_set, labels={"pod-template-hash": "77aa"}, controller=controller("web-77aa")),
    )
    pods = (web("web-5d4f-a", "n9"), web("web-5d4f-b"), DAEMON)

    def count(*workloads: WorkloadFacts) -> int:
        return len(cluster_under_assumptions(CLUSTER, WhatIf(pods=pods, workloads=workloads)).pods)

    assert count() == 3
    assert count(deployment, replica_set, former) == 3
    assert count(replica_set) == 3
    assert count(workload("Deployment", "other", 2)) == 5


def test_assumptions_about_unknown_workloads_are_errors() -> None:
    with pytest.raises(WhatIfError, match="workloads are not known: no rights"):
        cluster_under_assumptions(
            replace(CLUSTER, workloads=Unknown("no rights")), WhatIf((Assumption("shop", "web", 5),))
        )


def test_more_added_pods_than_any_cluster_can_have_are_an_error() -> None:
    many = workload("Deployment", "many", 2**31 - 1)
    with pytest.raises(WhatIfError, match="--add-pods: with Deployment shop/many there are more than 1000000 pods"):
        cluster_under_assumptions(CLUSTER, WhatIf(workloads=(many,)))
