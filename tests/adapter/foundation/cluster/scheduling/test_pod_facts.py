"""The spec of a pod constrains its placement; a pod that cannot be read is left out with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.facts.scheduling_pods import scheduled_pod_of
from adapter.foundation.cluster.forms.scheduling_pods import SchedulingPodForm
from adapter.foundation.cluster.values.constraints import (
    NO_CONSTRAINTS,
    HostPort,
    LocalVolume,
    NodeSelectorTerm,
    PodScheduling,
    PodTerm,
    SpreadConstraint,
    Toleration,
)
from adapter.foundation.objects.bounded_cache import bytes_of
from adapter.foundation.objects.requirements import Operator, Requirement
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.time.timestamps import seconds_of
from tests.support.cluster_objects import Json, pod_object

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod, SchedulingFacts

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LABELS = {"app": "web", "pod-template-hash": "abc"}


def read(content: Json) -> ClusterPod:
    return scheduled_pod_of(msgspec.json.decode(msgspec.json.encode(content), type=SchedulingPodForm))


def facts_of(content: Json) -> SchedulingFacts:
    facts = read(content).facts
    assert facts is not None
    return facts


def scheduling(**spec: object) -> PodScheduling:
    return facts_of(pod_object("web-1", labels=LABELS, **spec)).scheduling  # type: ignore[arg-type] # part of a spec


def node_terms(*terms: Json) -> Json:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def pod_terms(*terms: Json, kind: str = "podAffinity") -> Json:
    return {"affinity": {kind: {REQUIRED: list(terms)}}}


def spread(**changes: object) -> Json:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"} | changes
    return {"topologySpreadConstraints": [constraint]}


def container(*ports: Json) -> list[Json]:
    return [{"name": "c", "ports": list(ports)}]


WEB = {"matchLabels": {"app": "web"}}

STATED: dict[str, tuple[Json, PodScheduling]] = {
    "nothing": ({}, NO_CONSTRAINTS),
    "node selector": ({"nodeSelector": {"b": "2", "a": "1"}}, PodScheduling(node_selector=(("a", "1"), ("b", "2")))),
    "node affinity": (
        node_terms(
            {
                "matchExpressions": [
                    {"key": "zone", "operator": "In", "values": ["b", "a"]},
                    {"key": "cores", "operator": "Gt", "values": ["4"]},
                    {"key": "cores", "operator": "Lt", "values": ["64"]},
                    {"key": "spot", "operator": "DoesNotExist"},
                ]
            },
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n2"]}]},
            {},
        ),
        PodScheduling(
            node_terms=(
                NodeSelectorTerm(
                    (
                        Requirement("zone", Operator.IN, ("a", "b")),
                        Requirement("cores", Operator.GREATER_THAN, ("4",)),
                        Requirement("cores", Operator.LESS_THAN, ("64",)),
                        Requirement("spot", Operator.DOES_NOT_EXIST),
                    )
                ),
                NodeSelectorTerm(name_in=("n1",)),
                NodeSelectorTerm(name_not_in=("n2",)),
                NodeSelectorTerm(),
            )
        ),
    ),
    "node affinity without terms matches no node": (node_terms(), PodScheduling(node_terms=())),
    "preferences restrict nothing": (
        {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}},
        NO_CONSTRAINTS,
    ),
    "a term counts in the namespace of the pod": (
        pod_terms({"topologyKey": "zone", "labelSelector": WEB}),
        PodScheduling(affinity=(PodTerm("zone", parse_selector("app=web"), frozenset({"shop"})),)),
    ),
    "a term without selector matches no pod": (
        pod_terms({"topologyKey": "zone"}, kind="podAntiAffinity"),
        PodScheduling(anti_affinity=(PodTerm("zone", None, frozenset({"shop"})),)),
    ),
    "a namespace selector replaces the namespace of the pod": (
        pod_terms({"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}}, kind="podAntiAffinity"),
        PodScheduling(anti_affinity=(PodTerm("zone", EVERYTHING, frozenset(), EVERYTHING),)),
    ),
    "label keys become requirements on the labels of the pod": (
        pod_terms(
            {
                "topologyKey": "zone",
                "labelSelector": WEB,
                "namespaces": ["a", "b"],
                "matchLabelKeys": ["pod-template-hash", "absent"],
                "mismatchLabelKeys": ["app"],
            }
        ),
        PodScheduling(
            affinity=(
                PodTerm(
                    "zone",
                    parse_selector("app=web,app notin (web),pod-template-hash in (abc)"),
                    frozenset({"a", "b"}),
                ),
            )
        ),
    ),
    "spread": (
        spread(labelSelector=WEB, minDomains=3, nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor", maxSkew=2),
        PodScheduling(
            spread=(
                SpreadConstraint(
                    "zone", 2, parse_selector("app=web"), 3, honors_node_affinity=False, honors_node_taints=True
                ),
            )
        ),
    ),
    "spread over the pods of one revision": (
        spread(labelSelector=WEB, matchLabelKeys=["pod-template-hash"]),
        PodScheduling(spread=(SpreadConstraint("zone", 1, parse_selector("app=web,pod-template-hash in (abc)")),)),
    ),
    "a preferred spread restricts nothing": (spread(whenUnsatisfiable="ScheduleAnyway", maxSkew=0), NO_CONSTRAINTS),
    "tolerations": (
        {"tolerations": [{"key": "a", "value": "b", "effect": "NoSchedule"}, {"operator": "Exists"}]},
        PodScheduling(tolerations=(Toleration("a", "Equal", "b", "NoSchedule"), Toleration("", "Exists"))),
    ),
    "host ports": (
        {
            "containers": container(
                {"containerPort": 80, "hostPort": 8080},
                {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"},
                {"containerPort": 90},
            )
        },
        PodScheduling(host_ports=(HostPort("TCP", "0.0.0.0", 8080), HostPort("UDP", "10.0.0.1", 53))),
    ),
    "in the network of the node, ports of containers are its ports": (
        {"hostNetwork": True, "containers": container({"containerPort": 80})},
        PodScheduling(host_ports=(HostPort("TCP", "0.0.0.0", 80),)),
    ),
    "ports of sidecars count, those of other init containers do not": (
        {
            "initContainers": [
                {"name": "a", "restartPolicy": "Always", "ports": [{"containerPort": 1, "hostPort": 1}]},
                {"name": "b", "ports": [{"containerPort": 2, "hostPort": 2}]},
            ]
        },
        PodScheduling(host_ports=(HostPort("TCP", "0.0.0.0", 1),)),
    ),
    "volumes": (
        {
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "cache", "emptyDir": {}},
                {"name": "memory", "emptyDir": {"medium": "Memory"}},
                {"name": "logs", "hostPath": {"path": "/var/log"}},
                {"name": "token", "projected": {"sources": []}},
            ]
        },
        PodScheduling(
            claims=("data-web-1", "web-1-scratch"),
            local_volumes=(("cache", LocalVolume.EMPTY_DIR), ("logs", LocalVolume.HOST_PATH)),
        ),
    ),
    "disks that the spec names": (
        {
            "volumes": [
                {"name": "a", "awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": True}},
                {"name": "g", "gcePersistentDisk": {"pdName": "disk", "readOnly": True}},
                {"name": "i", "iscsi": {"iqn": "iqn.1", "targetPortal": "t", "lun": 1}},
                {"name": "r", "rbd": {"monitors": ["m1", "m2"], "image": "foo"}},
            ]
        },
        PodScheduling(
            inline_volumes=(
                "awsElasticBlockStore/vol-1",
                "gcePersistentDisk/disk:ro",
                "iscsi/iqn.1",
                "rbd/m1/rbd/foo",
                "rbd/m2/rbd/foo",
            )
        ),
    ),
    "others": (
        {
            "schedulerName": "mine",
            "schedulingGates": [{"name": "wait"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}],
        },
        PodScheduling(scheduler_name="mine", is_gated=True, resource_claims=("gpu",)),
    ),
}


@pytest.mark.parametrize("case", STATED)
def test_placement_constraints_are_read_from_the_spec(case: str) -> None:
    spec, expected = STATED[case]
    assert scheduling(**spec) == expected


BROKEN: dict[str, tuple[Json, str]] = {
    "operator of a node": (
        node_terms({"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}),
        "the operator 'Near' is not known",
    ),
    "number of a node": (
        node_terms({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["many"]}]}),
        "needs an integer",
    ),
    "field of a node": (
        node_terms({"matchFields": [{"key": "spec.unschedulable", "operator": "In", "values": ["x"]}]}),
        "the field 'spec.unschedulable' is not known",
    ),
    "two names of a node": (
        node_terms({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x", "y"]}]}),
        "one value",
    ),
    "topology key": (pod_terms({"labelSelector": {}}), "podAffinity.*topologyKey is missing"),
    "operator of a selector": (
        pod_terms({"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}),
        "the operator 'Gt' is not known",
    ),
    "affinity of another type": ({"affinity": {"podAffinity": 5}}, "spec.affinity: Expected"),
    "skew": (spread(maxSkew=0), "maxSkew is 0"),
    "policy": (spread(nodeTaintsPolicy="Perhaps"), "nodeTaintsPolicy 'Perhaps' is not known"),
    "when": (spread(whenUnsatisfiable="Never"), "whenUnsatisfiable 'Never' is not known"),
    "toleration": ({"tolerations": [{"key": "a", "operator": "Like"}]}, "the operator 'Like' is not known"),
    "effect": ({"tolerations": [{"key": "a", "effect": "NoWay"}]}, "the effect 'NoWay' is not known"),
    "toleration of everything": ({"tolerations": [{"value": "a"}]}, "the operator must be Exists"),
    "claim": ({"volumes": [{"name": "v", "persistentVolumeClaim": {}}]}, "claimName is missing"),
    "protocol": ({"containers": container({"hostPort": 1, "protocol": "ICMP"})}, "'ICMP' is not known"),
    "port": ({"containers": container({"hostPort": 70000})}, "70000 is not a port"),
    "no containers": ({"containers": []}, "spec.containers is missing"),
    "request": (
        {"containers": [{"name": "c", "resources": {"requests": {"cpu": "lots"}}}]},
        "spec.containers.*'lots' is not a quantity",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_pod_that_cannot_be_read_is_refused_with_the_reason(case: str) -> None:
    spec, problem = BROKEN[case]
    with pytest.raises(FactError, match=f"^Pod shop/web-1: .*{problem}"):
        scheduling(**spec)


@pytest.mark.parametrize("case", BROKEN)
def test_a_bound_pod_that_cannot_be_read_still_occupies_its_node(case: str) -> None:
    spec, _ = BROKEN[case]
    content = pod_object("web-1", node="n1", requests={"cpu": "2"}, owner=("ReplicaSet", "web"), **spec)
    pod = read(content)
    assert pod.facts is not None
    assert pod.node == "n1"
    assert pod.controller is not None
    assert pod.facts.problem.startswith("Pod shop/web-1: ")
    assert pod.facts.are_requests_known == (case not in {"no containers", "request"})
    if "containers" not in spec:
        assert pod.resources.requests == {"cpu": 2000}


def test_an_ended_pod_that_cannot_be_read_does_not_occupy_its_node() -> None:
    with pytest.raises(FactError):
        read(pod_object("web-1", node="n1", phase="Failed", tolerations=5))


def test_pods_of_one_controller_share_their_constraints_although_their_token_volumes_differ() -> None:
    def pod(number: int) -> PodScheduling:
        token = {"name": f"kube-api-access-abcd{number}", "projected": {"sources": []}}
        spec: dict[str, Any] = {"volumes": [{"name": "cache", "emptyDir": {}}, token]}
        return facts_of(pod_object(f"web-{number}", **spec, **pod_terms({"topologyKey": "zone"}))).scheduling

    assert pod(1) is pod(2)


def test_times_and_autoscaler_annotations_of_a_pod_are_read() -> None:
    annotations = {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "kubernetes.io/config.mirror": "x",
        "note": "large",
    }
    content = pod_object("web-1", annotations=annotations, restartPolicy="Never", terminationGracePeriodSeconds=60)
    content["metadata"] |= {"deletionTimestamp": "2026-11-22T05:00:30Z", "deletionGracePeriodSeconds": 5}
    content["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    facts = facts_of(content)
    assert facts.annotations == {key: value for key, value in annotations.items() if key != "note"}
    assert facts.created == seconds_of("2026-01-01T00:00:00Z")
    assert facts.deleted == seconds_of("2026-11-22T05:00:30Z")
    assert (facts.grace_seconds, facts.restart_policy) == (5.0, "Never")


def test_the_grace_period_is_that_of_the_spec_or_30_seconds() -> None:
    assert facts_of(pod_object("a", terminationGracePeriodSeconds=0)).grace_seconds == 0.0
    assert facts_of(pod_object("a")).grace_seconds == 30.0


@pytest.mark.parametrize(
    ("owners", "problem"),
    [
        ([], ""),
        ([{"kind": "ReplicaSet", "name": "a", "controller": True}, {"kind": "X", "name": "b"}], ""),
        (
            [{"kind": "ReplicaSet", "name": name, "controller": True} for name in ("a", "b")],
            "names 2 controllers, ReplicaSet a and ReplicaSet b",
        ),
        ([{"kind": "ReplicaSet", "controller": True}], "a controller without kind or name"),
    ],
)
def test_an_owner_that_cannot_be_used_is_named(owners: list[Json], problem: str) -> None:
    content = pod_object("a")
    content["metadata"]["ownerReferences"] = owners
    found = facts_of(content).owner_problem
    assert problem in found
    assert bool(found) == bool(problem)


def anti_affinity(count: int) -> Json:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    return pod_terms(*[term | {"namespaces": [f"n{number}"]} for number in range(count)], kind="podAntiAffinity")


HEAVY = {
    "terms of anti-affinity": pod_object("p", **anti_affinity(11_500)),
    "labels": pod_object("p", labels={f"label-{number}": "v" * 63 for number in range(10_000)}),
    "values": pod_object("p", **node_terms({"matchExpressions": [
        {"key": "a", "operator": "In", "values": [f"v{number}" for number in range(10_000)]}
    ]})),
    "tolerations": pod_object(
        "p", tolerations=[{"key": f"k{number}", "operator": "Exists"} for number in range(2_000)]
    ),
    "spread": pod_object("p", topologySpreadConstraints=spread()["topologySpreadConstraints"] * 1_000),
    "nodeSelector": pod_object("p", nodeSelector={f"k{number}": "v" * 60 for number in range(1_000)}),
}  # fmt: skip


@pytest.mark.parametrize("content", HEAVY.values(), ids=HEAVY.keys())
def test_a_pod_with_too_large_constraints_is_refused_with_the_limit(content: Json) -> None:
    """In an attack, 36 pods with 11,500 terms of anti-affinity each made all decisions stale."""
    with pytest.raises(
        FactError, match=r"^Pod shop/p: its labels, affinity, .* take \d+ bytes, and at most 32768 are evaluated"
    ):
        read(content)


@pytest.mark.parametrize("content", HEAVY.values(), ids=HEAVY.keys())
def test_a_bound_pod_with_too_large_constraints_occupies_its_node_and_little_memory(content: Json) -> None:
    bound = content | {"spec": content["spec"] | {"nodeName": "n1"}}
    found = read(bound)
    assert found.facts is not None
    assert "are evaluated" in found.facts.problem
    assert (found.node, found.facts.scheduling, found.facts.are_requests_known) == ("n1", NO_CONSTRAINTS, True)
    assert bytes_of(found) < 32 << 10


def test_a_pod_that_names_three_hundred_nodes_is_read() -> None:
    names = [f"ip-10-0-{number}-17.eu-central-1.compute.internal" for number in range(300)]
    terms = node_terms({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": names}]})
    assert scheduling(**terms).node_terms is not None
