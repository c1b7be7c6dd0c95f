"""Groups of Cluster API that somebody else sizes: their size is not written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.foundation.cluster.values.state import Observed
from adapter.foundation.sources.kubernetes.client import USER_AGENT
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Output, Owners, RecommendationPolicy
from recommender.kinds.cluster_size.group_owners import with_group_owners
from recommender.kinds.cluster_size.group_writes import GroupWrites, group_writes
from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups, SizeManager
from recommender.kinds.cluster_size.model.memory import AskedSize, ClusterSizeMemory, WrittenSize
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources
from recommender.kinds.cluster_size.requested_sizes import settled_writes, with_asked_sizes
from recommender.outputs.pending_writes import PendingWrite
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from tests.recommender.kinds.cluster_size.builders import pod
from tests.recommender.kinds.cluster_size.deciding import decide_sizes, writes_of
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_groups import NAME, found, only
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import ALL, Json, machines_of, scalable, state
from tests.recommender.kinds.cluster_size.options import group as group_of_nodes
from tests.recommender.kinds.cluster_size.scale_up.harnesses import decided, situation
from tests.recommender.kinds.cluster_size.test_decide import cluster
from tests.recommender.running.sizes.size_harness import GROUP

NOW = 1000.0
NOTHING, DEFAULT = ClusterSizeMemory(), Owners()
WROTE_FIVE = ClusterSizeMemory(written={"workers": WrittenSize(5, NOW - 60.0)})
REPLACED = (
    "another recommender has replaced the 5 replicas that this one wrote, so nothing is written before "
    "1970-01-01T00:30:40Z: keep the output scale in one of them"
)


def group(*managers: SizeManager, size: int = 4) -> NodeGroup:
    return NodeGroup("workers", 1, 10, size, scalable=GROUP, size_managers=managers)


def paused(one: NodeGroup, memory: ClusterSizeMemory = NOTHING, owners: Owners = DEFAULT, now: float = NOW) -> str:
    return only(with_group_owners(NodeGroups((one,)), owners, memory, now)).paused


def by(manager: str, time: float | None = NOW) -> SizeManager:
    return SizeManager(manager, time)


@pytest.mark.parametrize("manager", ["argocd-controller", "kustomize-controller"])
def test_a_group_whose_size_a_field_manager_keeps_writing_is_refused(manager: str) -> None:
    reason = paused(group(by("kubectl"), by(manager, None)))
    assert reason == (
        f"field manager {manager} keeps writing spec.replicas: let it ignore spec.replicas, or remove it from owners"
    )


@pytest.mark.parametrize("manager", ["kubectl", "helm", "manager", USER_AGENT])
def test_a_group_whose_size_was_written_once_is_not_refused(manager: str) -> None:
    assert paused(group(by(manager))) == ""


def test_the_configured_field_managers_count() -> None:
    assert paused(group(by("argocd-controller")), owners=Owners(("fluxcd",))) == ""
    assert "fluxcd keeps writing" in paused(group(by("fluxcd")), owners=Owners(("fluxcd",)))


def test_a_size_that_another_recommender_has_replaced_is_left_in_place_for_a_while() -> None:
    assert paused(group(by(USER_AGENT)), WROTE_FIVE) == REPLACED
    assert paused(group(by(USER_AGENT)), WROTE_FIVE, now=NOW + 839.0) == REPLACED
    assert paused(group(by(USER_AGENT)), WROTE_FIVE, now=NOW + 840.0) == ""


@pytest.mark.parametrize(
    ("one", "memory"),
    [
        (group(by(USER_AGENT), size=5), WROTE_FIVE),
        (group(by("kubectl")), WROTE_FIVE),
        # What is seen is older than the own write.
        (group(by(USER_AGENT, NOW - 61.0)), WROTE_FIVE),
        (group(by(USER_AGENT, None)), WROTE_FIVE),
        (group(by(USER_AGENT)), NOTHING),
    ],
    ids=["own size", "somebody's size", "older than the write", "no time", "nothing written"],
)
def test_no_other_size_counts_as_that_of_another_recommender(one: NodeGroup, memory: ClusterSizeMemory) -> None:
    assert paused(one, memory) == ""


def test_another_reason_not_to_write_the_size_stays() -> None:
    assert paused(replace(group(by("argocd-controller")), paused="it is being deleted")) == "it is being deleted"


def writes(one: NodeGroup) -> GroupWrites:
    return group_writes("nodes", NodeGroups((one,)), {"workers": 6}, {}, valid_until=60.0)


def test_the_size_of_a_refused_group_is_not_written() -> None:
    refused = only(with_group_owners(NodeGroups((group(by(USER_AGENT)),)), Owners(), WROTE_FIVE, NOW))
    assert writes(refused) == GroupWrites(refusals={"workers": REPLACED})


@pytest.mark.parametrize("result", [ScaleResult.OK, ScaleResult.UNCHANGED])
def test_a_size_is_remembered_as_written_once_its_write_has_succeeded(result: ScaleResult) -> None:
    asked, _ = with_asked_sizes(WROTE_FIVE, writes(group()), NodeGroups((group(),)), NOW)
    assert asked.written == {}, "the write may have an effect at any moment from now on"
    outcome = ScaleOutcome(PendingWrite("nodes", GROUP, 6, NOW + 60.0), result)
    after = settled_writes(asked, NodeGroups((group(size=3),)), {GROUP: outcome}, NOW + 10.0, 60.0)
    assert after.written == {"workers": WrittenSize(6, NOW)}
    assert "has replaced the 6 replicas" in paused(group(by(USER_AGENT, NOW), size=3), after, now=NOW + 10.0)


def test_what_an_admission_webhook_made_of_a_written_size_is_not_the_size_of_another_recommender() -> None:
    asked, _ = with_asked_sizes(NOTHING, writes(group()), NodeGroups((group(),)), NOW)
    outcome = ScaleOutcome(PendingWrite("nodes", GROUP, 6, NOW + 60.0), ScaleResult.OK, stored=7)
    after = settled_writes(asked, NodeGroups((group(),)), {GROUP: outcome}, NOW + 10.0, 60.0)
    assert paused(group(by(USER_AGENT, NOW), size=7), after, now=NOW + 10.0) == ""
    assert "has replaced the 7 replicas" in paused(group(by(USER_AGENT, NOW), size=3), after, now=NOW + 10.0)


def test_written_sizes_are_forgotten_once_they_no_longer_count() -> None:
    assert settled_writes(WROTE_FIVE, NodeGroups(), {}, NOW + 839.0, 60.0) == WROTE_FIVE
    assert settled_writes(WROTE_FIVE, NodeGroups(), {}, NOW + 840.0, 60.0) == NOTHING


def test_a_write_with_an_unknown_outcome_proves_nothing_about_others() -> None:
    asked = ClusterSizeMemory(asked={"workers": AskedSize(6, 4, NOW)})
    after = settled_writes(asked, NodeGroups((group(size=3),)), {}, NOW + 600.0, 60.0)
    assert (after.asked, after.written) == ({}, {})


def test_written_sizes_are_not_stored_since_earlier_versions_refuse_what_they_do_not_know() -> None:
    assert WROTE_FIVE.stored == NOTHING


def test_a_clock_that_is_set_moves_written_sizes_with_it() -> None:
    assert WROTE_FIVE.prolonged(60.0).written == {"workers": WrittenSize(5, NOW)}
    assert WROTE_FIVE.repaired(NOW - 100.0).written == {}


def managed(manager: str, time: str) -> Json:
    one = scalable()
    one["metadata"]["managedFields"] = [
        {"manager": manager, "time": time, "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"manager": "manager", "time": time, "fieldsV1": {"f:status": {"f:replicas": {}}}},
    ]
    return one


def discovered(manager: str, time: str = "1970-01-01T00:16:30Z") -> NodeGroup:
    owned, machines = machines_of("workers", "n1")
    return only(found(managed(manager, time), owned, *machines))


def test_the_managers_of_the_size_are_read_from_the_object() -> None:
    assert discovered("argocd-controller").size_managers == (by("argocd-controller", 990.0),)
    assert discovered("x", "yesterday").size_managers == (by("x", None),)


def test_a_cluster_autoscaler_that_wrote_the_size_a_short_time_ago_manages_the_group() -> None:
    shown = "Cluster Autoscaler (field manager cluster-autoscaler, which wrote spec.replicas at 1970-01-01T00:16:30Z)"
    assert discovered("cluster-autoscaler").autoscaler == shown
    assert discovered("cluster-autoscaler", "1970-01-01T00:01:30Z").autoscaler == ""
    assert discovered("cluster-autoscaler", "").autoscaler == ""


def test_a_group_whose_size_an_hpa_wrote_a_short_time_ago_is_refused() -> None:
    hpa = "kube-controller-manager"
    assert discovered(hpa).autoscaler == ""
    assert paused(group(by(hpa, NOW - 900.0))).startswith("an HPA has changed its size in the last 15 minutes")
    assert paused(group(by(hpa, NOW - 901.0))) == ""
    assert paused(group(by(hpa, None))) == ""


def test_pods_do_not_wait_for_the_group_of_an_hpa_which_adds_no_nodes_for_them() -> None:
    scaled = replace(group_of_nodes("a"), size_managers=(by("kube-controller-manager"),))
    its = situation((scaled, group_of_nodes("b")), pods=[pod("p", "1")], writes_sizes=True)
    owned = with_group_owners(its.groups, DEFAULT, NOTHING, NOW)
    assert decided(replace(its, groups=owned), expanders=("least-nodes",)).increases == {"b": 1}


@pytest.mark.parametrize("has_lease", [True, False])
def test_another_recommender_is_recognized_only_with_a_lease(*, has_lease: bool) -> None:
    """Without one, a former process of this recommender may write once more while this one starts."""
    nodes = [f"n{number}" for number in range(3)]
    owned, machines = machines_of("workers", *nodes)
    one = managed(USER_AGENT, "2027-01-15T07:59:30Z")
    one["spec"]["replicas"] = 3
    at = 1_800_000_000.0
    objects = {
        kind: Observed(seen.value, at)
        for kind, seen in state(one, owned, *machines).objects.items()
        if isinstance(seen, Observed)
    }
    written = ClusterSizeMemory(written={NAME: WrittenSize(5, at - 60.0)})
    decision = decide_sizes(
        RecommendationPolicy("nodes", "clusterSize", outputs=frozenset({Output.SCALE})),
        ClusterSizeSettings(NodeGroupSources(cluster_api=ALL)),
        Inputs(replace(cluster(at, pending=1), objects=objects)),
        Memory(own=written),
        at,
        writes_sizes=True,
        has_lease=has_lease,
    )
    found = writes_of(decision).groups
    assert ([write.replicas for write in found.writes], list(found.refusals)) == (
        ([], [NAME]) if has_lease else ([4], [])
    )
