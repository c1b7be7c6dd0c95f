"""A node group that a cluster size is written to is left alone by all recommendations that name it as a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import pytest

from adapter.foundation.cluster.values.state import ClusterState, ObjectKind, Observed, Unknown
from adapter.foundation.time.clock import Clock
from recommender.configuration.reading import read_configuration
from recommender.decisions.inputs import Inputs, TargetState
from recommender.decisions.record import TargetAction, TargetOutcome, TargetReference
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.memory.memories import Memories
from recommender.running.memory.store_protocol import ProcessMemoryStore
from recommender.running.polls.poll_decisions import PollDecisions
from tests.recommender.configuration.files import entry, whole

NOW: Final = 1_767_225_600.0
API: Final = "cluster.x-k8s.io/v1beta1"
WEB: Final = TargetReference("apps/v1", "Deployment", "shop", "web")
WORKERS: Final = TargetReference(API, "MachineDeployment", "capi", "workers")
MACHINES: Final = ObjectKind("cluster.x-k8s.io", "machinedeployments", "MachineDeployment", "capi")
LIMITS: Final = {f"cluster.x-k8s.io/cluster-api-autoscaler-node-group-{each}-size": "9" for each in ("min", "max")}
TARGET: Final = f"targets: [{{apiVersion: {API}, kind: MachineDeployment, namespace: capi, name: workers}}]"
SIZES: Final = "clusterSize: {nodeGroups: {clusterAPI: {namespaces: [capi], clusterName: prod}}}"
Known: TypeAlias = Observed[tuple[Mapping[str, object], ...]] | Unknown


def workers(**annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "MachineDeployment",
        "metadata": {"namespace": "capi", "name": "workers", "annotations": annotations},
        "spec": {"clusterName": "prod", "replicas": 2},
    }


def listed(*objects: Mapping[str, object]) -> Known:
    return Observed(objects, NOW)


def outcomes(known: Known, *entries: str) -> dict[str, list[TargetOutcome]]:
    """Return what happens to each target, by recommendation."""
    configuration = read_configuration(whole(*entries), "r.yaml")
    assert not configuration.refused
    inputs = Inputs(
        ClusterState(
            nodes=Observed((), NOW), autoscalers=dict.fromkeys(("capi", "shop"), Observed((), NOW)),
            objects={MACHINES: known},
        ),
        targets=dict.fromkeys((WORKERS, WEB), Observed(TargetState(2), NOW)),
    )  # fmt: skip
    decisions = PollDecisions(Memories(ProcessMemoryStore()), Clock())
    found = decisions.decide(plan_of(configuration), inputs, NOW)
    return {one.name: list(one.decisions[0].record.targets) for one in found}


def outcome(known: Known, sizes: str = SIZES, outputs: str = "[scale]") -> TargetOutcome:
    entries = entry("by-nodes", TARGET, "outputs: [scale]"), entry("nodes", f"outputs: {outputs}", kind=sizes)
    return outcomes(known, *entries)["by-nodes"][0]


@pytest.mark.parametrize("known", [listed(workers(**LIMITS)), Unknown("its first list is awaited")])
def test_a_target_that_is_a_written_node_group_is_refused(known: Known) -> None:
    found = outcome(known)
    assert (found.action, found.owner) == (TargetAction.REFUSED, "recommendation nodes")


def test_other_objects_of_cluster_api_and_groups_that_are_not_written_may_be_targets() -> None:
    groups = listed(workers(**LIMITS))
    assert outcome(listed(workers())).action is TargetAction.SCALE
    assert outcome(groups, SIZES.replace("[capi]", "[other]")).action is TargetAction.SCALE
    assert outcome(groups, SIZES.replace("prod", "staging")).action is TargetAction.SCALE
    assert outcome(groups, outputs="[metric]").action is TargetAction.SCALE


def test_a_target_that_another_recommendation_scales_stays_refused_beside_a_node_group() -> None:
    web = "{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}"
    found = outcomes(
        listed(workers(**LIMITS)),
        entry("both", f"{TARGET[:-1]}, {web}]", "outputs: [scale]"),
        entry("other", f"targets: [{web}]", "outputs: [scale]"),
        entry("nodes", "outputs: [scale]", kind=SIZES),
    )
    assert [(each.action, each.owner) for each in found["both"]] == [
        (TargetAction.REFUSED, "recommendation nodes"),
        (TargetAction.REFUSED, "recommendation other"),
    ]
