"""The template of a new node of a Cluster API group that has no nodes."""

from __future__ import annotations

import pytest

from tests.recommender.kinds.cluster_size.node_groups.cluster_api_groups import FROM_ZERO, found, only
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import BOUNDS, CAPACITY, VERSIONS, scalable


def test_a_group_without_nodes_has_the_template_of_its_annotations() -> None:
    template = only(found(scalable(replicas=0, annotations=FROM_ZERO))).template
    assert template is not None
    amounts = {key: str(value) for key, value in template.node.allocatable.items()}
    assert amounts == {
        "cpu": "16", "memory": "128G", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "2", "pods": "110",
    }  # fmt: skip
    assert template.node.labels == {
        "zone": "a", "node-role.kubernetes.io/gpu": "", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
    }  # fmt: skip
    assert [(one.key, one.value, one.effect) for one in template.node.taints] == [
        ("gpu", "yes", "NoSchedule"),
        ("burst", "", "NoExecute"),
    ]
    assert template.source == "template of Cluster API"


INFRASTRUCTURE = {
    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
    "kind": "DockerMachineTemplate",
    "metadata": {"name": "workers-infra", "namespace": "capi"},
    "status": {
        "capacity": {"cpu": "8", "memory": "32Gi", "pods": "30"},
        "nodeInfo": {"architecture": "arm64", "operatingSystem": "linux"},
    },
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_without_nodes_and_annotations_has_its_infrastructure_template(version: str) -> None:
    machine_template = {
        "metadata": {"labels": {"node.cluster.x-k8s.io/pool": "w", "other": "x"}},
        "spec": {"taints": [{"key": "pool", "value": "w", "effect": "NoSchedule", "propagation": "Always"}]},
    }
    group = only(found(scalable(replicas=0, version=version, template=machine_template), INFRASTRUCTURE))
    assert group.template is not None
    made = group.template.node
    assert {key: str(value) for key, value in made.allocatable.items()} == {"cpu": "8", "memory": "32Gi", "pods": "110"}
    assert made.labels["kubernetes.io/arch"] == "arm64"
    assert made.labels["node.cluster.x-k8s.io/pool"] == "w"
    assert "other" not in made.labels, "Cluster API propagates labels of three domains alone"
    assert [(one.key, one.value, one.effect) for one in made.taints] == [("pool", "w", "NoSchedule")]


def test_annotations_override_the_infrastructure_template() -> None:
    annotations = {**BOUNDS, f"{CAPACITY}cpu": "6", f"{CAPACITY}maxPods": "50"}
    template = only(found(scalable(replicas=0, annotations=annotations), INFRASTRUCTURE)).template
    assert template is not None
    assert {key: str(value) for key, value in template.node.allocatable.items()} == {
        "cpu": "6", "memory": "32Gi", "pods": "50",
    }  # fmt: skip


@pytest.mark.parametrize("nothing", ["", "0"])
def test_empty_and_zero_amounts_count_as_not_stated(nothing: str) -> None:
    annotations = {
        **FROM_ZERO,
        f"{CAPACITY}maxPods": nothing,
        f"{CAPACITY}ephemeral-disk": nothing,
        f"{CAPACITY}gpu-count": nothing,
    }
    template = only(found(scalable(replicas=0, annotations=annotations))).template
    assert template is not None
    assert {key: str(value) for key, value in template.node.allocatable.items()} == {
        "cpu": "16", "memory": "128G", "pods": "110",
    }  # fmt: skip
    unstated = {**BOUNDS, f"{CAPACITY}cpu": nothing, f"{CAPACITY}memory": "1Gi"}
    assert only(found(scalable(replicas=0, annotations=unstated))).problem.startswith("it has no ready node")
    from_template = only(found(scalable(replicas=0, annotations=unstated), INFRASTRUCTURE)).template
    assert from_template is not None
    assert str(from_template.node.allocatable["cpu"]) == "8"


def test_an_entry_of_the_labels_without_a_value_states_no_label() -> None:
    annotations = {**FROM_ZERO, f"{CAPACITY}labels": "zone=a,fast,empty="}
    template = only(found(scalable(replicas=0, annotations=annotations))).template
    assert template is not None
    stated = {key: value for key, value in template.node.labels.items() if "/" not in key}
    assert stated == {"zone": "a", "empty": ""}, "a pod that needs the label `fast` would wait for a node without it"


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({}, "it has no ready node and no template"),
        ({f"{CAPACITY}cpu": "4"}, "it has no ready node and no template"),
        ({f"{CAPACITY}cpu": "four", f"{CAPACITY}memory": "1Gi"}, "the annotation cpu: 'four' is not a quantity"),
        ({f"{CAPACITY}cpu": "4", f"{CAPACITY}memory": "1Gi", f"{CAPACITY}taints": "a=b"}, "has 'a=b': write"),
    ],
)
def test_a_group_without_nodes_and_a_usable_template_is_left_out_with_a_reason(
    extra: dict[str, str], problem: str
) -> None:
    assert problem in only(found(scalable(replicas=0, annotations={**BOUNDS, **extra}))).problem
