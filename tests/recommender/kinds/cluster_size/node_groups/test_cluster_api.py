"""Node groups of Cluster API: their nodes, sizes, options, and groups that are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import Unknown
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.model.size_settings import ClusterApiGroups, NodeGroupSources
from recommender.kinds.cluster_size.node_groups import watched_kinds as kinds
from recommender.kinds.cluster_size.node_groups.discover import object_kinds
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_groups import FROM_ZERO, NAME, found, only
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import (
    ALL,
    BOUNDS,
    MAX,
    MIN,
    OPTIONS,
    VERSIONS,
    cluster,
    machine,
    machines_of,
    owner,
    scalable,
    state,
)

if TYPE_CHECKING:
    from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import Json


@pytest.mark.parametrize("version", VERSIONS)
def test_a_machine_deployment_is_a_group_with_the_nodes_of_its_machines(version: str) -> None:
    owned, machines = machines_of("workers", "n1", "n2", version=version)
    groups = found(scalable(version=version), owned, *machines, cluster())
    group = only(groups)
    assert (group.name, group.min_size, group.max_size, group.target_size) == (NAME, 1, 10, 2)
    assert group.nodes == ("n1", "n2")
    assert groups.group_of == {"n1": NAME, "n2": NAME}
    assert group.scalable == TargetReference(f"cluster.x-k8s.io/{version}", "MachineDeployment", "capi", "workers")
    assert (group.problem, group.paused, group.autoscaler, groups.problems) == ("", "", "", ())
    assert group.template is not None
    assert group.template.source == "node n1"


def test_a_standalone_machine_set_is_a_group_and_one_of_a_deployment_is_not() -> None:
    alone = scalable("alone", 1, kind="MachineSet")
    owned, machines = machines_of("workers", "n2")
    groups = found(scalable(), owned, *machines, alone, machine("m1", "n1", owned_by=owner("MachineSet", "alone")))
    assert {group.name: group.nodes for group in groups.groups} == {NAME: ("n2",), "MachineSet/capi/alone": ("n1",)}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_machine_pool_contains_the_nodes_that_it_lists(version: str) -> None:
    reference = {"name": "n1", "kind": "Node"} if version == "v1beta1" else {"name": "n1"}
    pool = scalable(
        "pool",
        3,
        kind="MachinePool",
        version=version,
        spec={"providerIDList": ["aws:///a/i-1", "aws:///a/i-2"]},
        status={"nodeRefs": [reference]},
    )
    group = only(found(pool, nodes=(node("n1", provider_id="aws:///a/i-1"), node("n2", provider_id="aws:///a/i-2"))))
    assert (group.name, group.target_size, group.nodes) == ("MachinePool/capi/pool", 3, ("n1", "n2"))


def test_the_node_of_a_machine_is_found_by_provider_id_before_it_states_one() -> None:
    owned, _ = machines_of("workers")
    known = machine("m1", "", owned_by=owner("MachineSet", "workers-x7f2k"), provider_id="aws:///a/i-1")
    group = only(found(scalable(), owned, known, nodes=(node("n1", provider_id="aws:///a/i-1"),)))
    assert group.nodes == ("n1",)


def test_a_node_whose_machine_is_being_deleted_is_marked_as_deleting() -> None:
    owned, machines = machines_of("workers", "n1")
    going = machine("m2", "n2", owned_by=owner("MachineSet", "workers-x7f2k"), deleted=True)
    group = only(found(scalable(), owned, *machines, going))
    assert (group.nodes, group.deleting) == (("n1", "n2"), ("n2",))


@pytest.mark.parametrize(
    ("size", "leaving"), [pytest.param(1, ("n2",), id="size-is-lowered"), pytest.param(2, (), id="only-preferred")]
)
def test_a_marked_machine_counts_as_deleting_once_the_size_is_lower(size: int, leaving: tuple[str, ...]) -> None:
    owned, machines = machines_of("workers", "n1")
    mark = {"cluster.x-k8s.io/delete-machine": "tidewatch"}
    marked = machine("m2", "n2", owned_by=owner("MachineSet", "workers-x7f2k"), annotations=mark)
    assert only(found(scalable(replicas=size), owned, *machines, marked)).deleting == leaving


@pytest.mark.parametrize(
    ("stated", "names"),
    [
        (ALL, ["a", "b"]),
        (ClusterApiGroups(("capi",), cluster_name="prod"), ["a"]),
        (ClusterApiGroups(("capi",), cluster_name="none"), []),
    ],
)
def test_only_groups_of_the_named_cluster_count(stated: ClusterApiGroups, names: list[str]) -> None:
    groups = found(scalable("a"), scalable("b", cluster="test"), stated=stated)
    assert [group.name.rpartition("/")[2] for group in groups.groups] == names


def test_an_object_without_annotations_is_not_a_group() -> None:
    assert found(scalable(annotations={})).groups == ()


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        ({MIN: "1"}, f"the annotation {MAX} is missing"),
        ({MAX: "1"}, f"the annotation {MIN} is missing"),
        ({MIN: "one", MAX: "3"}, f"the annotation {MIN} is 'one'"),
        ({MIN: "-1", MAX: "3"}, f"the annotation {MIN} is '-1'"),
        ({MIN: "٣", MAX: "3"}, f"the annotation {MIN} is '٣'"),
        ({MIN: "4", MAX: "3"}, f"the annotation {MAX} is 3, which is less than the minimum of 4"),
        ({MIN: "0", MAX: "0"}, f"the annotation {MAX} is 0"),
    ],
)
def test_annotations_that_cannot_be_used_leave_the_group_out_with_a_reason(
    annotations: dict[str, str], problem: str
) -> None:
    assert only(found(scalable(annotations=annotations))).problem.startswith(problem)


@pytest.mark.parametrize(
    ("replicas", "present", "target"), [(None, 0, 1), (None, 4, 4), (None, 40, 10), (0, 4, 0), (12, 4, 12)]
)
def test_the_target_size_defaults_as_in_the_webhook_of_cluster_api(
    replicas: int | None, present: int, target: int
) -> None:
    assert only(found(scalable(replicas=replicas, status={"replicas": present}))).target_size == target


@pytest.mark.parametrize("replicas", ["3", -1, 2.5, True])
def test_an_invalid_size_leaves_the_group_out(replicas: object) -> None:
    assert only(found(scalable(spec={"replicas": replicas}))).problem.startswith(f"spec.replicas is {replicas!r}")


TOPOLOGY = {"workers": {"machineDeployments": [{"name": "md-0", "class": "x", "replicas": 3}]}}


@pytest.mark.parametrize(
    ("group", "prod", "reason"),
    [
        (scalable(annotations={**BOUNDS, "cluster.x-k8s.io/paused": ""}), cluster(), "paused by the annotation"),
        (scalable(spec={"paused": True}), cluster(), "paused by spec.paused"),
        (scalable(), cluster(paused=True), "its Cluster prod is paused"),
        (scalable(spec={"paused": False}), cluster(paused=False), ""),
        (scalable(annotations={**BOUNDS, "cluster.x-k8s.io/replicas-managed-by": "aks"}), cluster(), "size to aks"),
        (scalable(annotations={**BOUNDS, "cluster.x-k8s.io/replicas-managed-by": "false"}), cluster(), ""),
        (scalable(labels={"topology.cluster.x-k8s.io/deployment-name": "md-0"}), cluster(topology=TOPOLOGY), "md-0"),
        (scalable(labels={"topology.cluster.x-k8s.io/deployment-name": "md-1"}), cluster(topology=TOPOLOGY), ""),
    ],
)
def test_reasons_that_forbid_writing_the_size_are_stated(group: Json, prod: Json, reason: str) -> None:
    paused = only(found(group, prod)).paused
    assert (reason in paused) if reason else not paused


def test_if_clusters_cannot_be_read_no_size_is_written() -> None:
    groups = found(scalable(), more=dict.fromkeys(kinds.clusters(ALL), Unknown("403")))
    assert only(groups).paused == "it is not known whether its Cluster is paused: 403"


def test_without_machines_no_node_counts_as_missing() -> None:
    pool = scalable("pool", 1, kind="MachinePool", status={"nodeRefs": [{"name": "n1"}]})
    groups = found(scalable(), pool, more=dict.fromkeys(kinds.machines(ALL), Unknown("403")))
    assert [(group.problem, group.nodes) for group in groups.groups] == [
        ("its Machines are not known: 403", ()),
        ("", ("n1",)),
    ]


def test_without_machine_sets_the_label_of_a_machine_names_its_deployment() -> None:
    _, (one,) = machines_of("workers", "n1")
    one["metadata"]["labels"] = {"cluster.x-k8s.io/deployment-name": "workers"}
    groups = found(scalable(), one, more=dict.fromkeys(kinds.scalable_kinds("MachineSet", ALL), Unknown("403")))
    assert only(groups).nodes == ("n1",)


def test_a_kind_that_cannot_be_read_does_not_affect_the_others() -> None:
    owned, machines = machines_of("workers", "n1")
    groups = found(
        scalable(), owned, *machines, more=dict.fromkeys(kinds.scalable_kinds("MachinePool", ALL), Unknown("404"))
    )
    assert only(groups).nodes == ("n1",)
    unknown = "the MachinePools of Cluster API in capi are not known, so none is a node group: 404"
    assert groups.problems == (unknown,)


def test_options_of_a_group_are_read_and_invalid_ones_are_reported() -> None:
    annotations = {
        **BOUNDS,
        f"{OPTIONS}scaledownutilizationthreshold": "0.4",
        f"{OPTIONS}scaledowngpuutilizationthreshold": "0.3",
        f"{OPTIONS}scaledownunneededtime": "10m30s",
        f"{OPTIONS}scaledownunreadytime": "never",
        f"{OPTIONS}maxnodeprovisiontime": "20m",
        f"{OPTIONS}colour": "blue",
    }
    groups = found(scalable(annotations=annotations))
    assert only(groups).options == GroupOptions(0.4, 0.3, 630.0, None, 1200.0)
    assert len(groups.problems) == 2
    assert all(text.startswith("MachineDeployment capi/workers: the annotation") for text in groups.problems)


def test_prices_are_found_by_full_name_or_object_name() -> None:
    stated = ClusterApiGroups(("capi",), prices={"MachineDeployment/capi/a": 0.1, "b": 0.2})
    groups = found(scalable("a"), scalable("b"), scalable("c"), stated=stated)
    assert [group.price for group in groups.groups] == [0.1, 0.2, None]


def test_the_kinds_to_read_follow_from_the_groups() -> None:
    sources = NodeGroupSources(cluster_api=ALL)
    first = object_kinds(sources)
    assert {kind.resource for kind in first} == {
        "machinedeployments", "machinesets", "machinepools", "machines", "clusters", "configmaps", "leases",
    }  # fmt: skip
    template = kinds.infrastructure("infrastructure.cluster.x-k8s.io", "DockerMachineTemplate", "capi")
    assert template.resource == "dockermachinetemplates"
    assert object_kinds(sources, state(scalable())) == first | {template}
    assert object_kinds(sources, state(scalable(annotations=FROM_ZERO))) == first
    assert object_kinds(NodeGroupSources()) == frozenset()


BROKEN: list[Json] = [
    {"kind": "MachineDeployment"},
    {"kind": "MachineDeployment", "metadata": None, "spec": []},
    {"kind": "MachineDeployment", "metadata": {"annotations": {MIN: 1, MAX: 2}, "ownerReferences": [7, None]}},
    {"kind": "Machine", "metadata": {"ownerReferences": "x"}, "status": {"nodeRef": [1]}},
    {"kind": "MachinePool", "metadata": {"annotations": BOUNDS}, "spec": {"providerIDList": [1, {}]}, "status": 3},
    {"kind": "MachineSet", "metadata": {"ownerReferences": [{"kind": "MachineSet", "name": "", "controller": True}]}},
]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_malformed_object_does_not_affect_the_others(broken: Json) -> None:
    owned, machines = machines_of("workers", "n1")
    groups = found(broken, scalable(), owned, *machines)
    assert next(group for group in groups.groups if group.name == NAME).nodes == ("n1",)


KEYS = (
    "name", "namespace", "kind", "controller", "annotations", "labels", "ownerReferences", "replicas", "nodeRef",
    "nodeRefs", "providerID", "providerIDList", "clusterName", "topology", "workers", "machineDeployments", "template",
    "spec", "metadata", "infrastructureRef", "taints", "paused", "capacity",
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "n1", "Machine", "MachineSet"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@examples(max_examples=60)
@given(st.sampled_from(["MachineDeployment", "MachineSet", "MachinePool", "Machine", "Cluster"]), JSON, JSON, JSON)
def test_whatever_an_object_contains_the_other_groups_are_found(
    kind: str, metadata: object, spec: object, status: object
) -> None:
    annotated = {"name": "odd", "annotations": BOUNDS} | (metadata if isinstance(metadata, dict) else {})
    owned, machines = machines_of("workers", "n1")
    odd = {"kind": kind, "metadata": annotated, "spec": spec, "status": status}
    groups = found(odd, scalable(), owned, *machines, cluster())
    assert next(group for group in groups.groups if group.name == NAME).nodes[:1] == ("n1",)
