"""A configuration needs exactly the rights that its recommendations use."""

from __future__ import annotations

from functools import partial

import pytest

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from recommender.configuration.reading import read_configuration
from recommender.configuration.rights import rights_of
from recommender.kinds.role_rules import RoleRule
from recommender.running.memory.store_protocol import memory_object_name
from tests.recommender.configuration.files import LINEAR, whole

CREATE, GET, REPLACE, UPDATE, WATCH = ("create",), ("get",), ("update",), ("get", "update"), ("list", "watch")
TARGET = "{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}"
OTHER = "{apiVersion: v1, kind: ReplicationController, namespace: shop, name: old}"
ROLLOUT = "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, namespace: shop, name: new}"
MEMORY = RoleRule("tools", "", "configmaps", "", UPDATE, ("tidewatch-recommender-dns",))
SHARDS = RoleRule(
    "tools", "", "configmaps", "", UPDATE, tuple(sorted(f"tidewatch-recommender-dns-{shard}" for shard in range(32)))
)
PROCESS = {
    RoleRule("tools", "", "configmaps", "", CREATE),
    MEMORY,
    RoleRule("tools", "coordination.k8s.io", "leases", "", CREATE),
    RoleRule("tools", "coordination.k8s.io", "leases", "", UPDATE, ("tidewatch-recommender",)),
}
NODES = RoleRule("", "", "nodes", "", WATCH)
SCALED_OBJECTS = RoleRule("shop", "keda.sh", "scaledobjects", "", WATCH)
OF_TARGETS = {
    RoleRule("shop", "", "events", "", CREATE),
    RoleRule("shop", "autoscaling", "horizontalpodautoscalers", "", WATCH),
}
OF_SERIES = {
    RoleRule("", "", "events", "", CREATE),
    RoleRule("", "autoscaling", "horizontalpodautoscalers", "", WATCH),
}
PREDICTIVE = "predictive: {load: x, loadPerReplica: 1, horizon: 1m, maxReplicas: 9"
PROMETHEUS = "prometheus: {url: 'http://p'}\n"


def rights(entry: str, top: str = "") -> tuple[RoleRule, ...]:
    configuration = read_configuration(whole(f"- name: dns\n  {entry}\n", top=top), "recommender.yaml")
    assert not configuration.refused
    resolve = partial(find_resource, BUILT_IN)
    return rights_of(configuration, namespace="tools", resolve=resolve, memory_name=memory_object_name)


DEFAULTS = "{linear: {nodesPerReplica: 2}}"
CASES = {
    "a metric without a target": (LINEAR, PROCESS | {NODES}),
    "a metric for a target": (
        f"{LINEAR}\n  targets: [{TARGET}]",
        PROCESS | OF_TARGETS | {NODES, RoleRule("shop", "apps", "deployments", "", GET, ("web",))},
    ),
    "two targets that are scaled": (
        f"{LINEAR}\n  targets: [{TARGET}, {OTHER}]\n  outputs: [metric, scale]",
        PROCESS
        | OF_TARGETS
        | {
            NODES,
            SCALED_OBJECTS,
            RoleRule("shop", "apps", "deployments", "", GET, ("web",)),
            RoleRule("shop", "apps", "deployments", "scale", UPDATE, ("web",)),
            RoleRule("shop", "", "replicationcontrollers", "", GET, ("old",)),
            RoleRule("shop", "", "replicationcontrollers", "scale", UPDATE, ("old",)),
        },
    ),
    "a target of an unknown kind": (
        f"{LINEAR}\n  targets: [{ROLLOUT}]\n  outputs: [scale]",
        PROCESS | OF_TARGETS | {NODES, SCALED_OBJECTS},
    ),
    "parameters in a ConfigMap": (
        "proportional: {configMap: {namespace: kube-system, name: params}}",
        PROCESS | {NODES, RoleRule("kube-system", "", "configmaps", "", GET, ("params",))},
    ),
    "parameters in a ConfigMap that may be missing": (
        f"proportional: {{configMap: {{namespace: kube-system, name: params, defaultParams: {DEFAULTS}}}}}",
        PROCESS
        | {
            NODES,
            RoleRule("kube-system", "", "configmaps", "", GET, ("params",)),
            RoleRule("kube-system", "", "configmaps", "", CREATE),
        },
    ),
    "services of the cluster and pods of a namespace, without nodes": (
        "proportional: {drivers: {services: {perReplica: 5}, pods: {perReplica: 5, namespace: shop}}}",
        PROCESS | {RoleRule("", "", "services", "", WATCH), RoleRule("shop", "", "pods", "", WATCH)},
    ),
    "endpoints": (
        "proportional: {drivers: {endpoints: {perReplica: 5}}}",
        PROCESS | {RoleRule("", "discovery.k8s.io", "endpointslices", "", WATCH)},
    ),
    "a prediction": (
        f"{PREDICTIVE}}}\n  targets: [{TARGET}]\n  outputs: [scale]",
        PROCESS
        | OF_TARGETS
        | {
            SCALED_OBJECTS,
            RoleRule("shop", "apps", "deployments", "", GET, ("web",)),
            RoleRule("shop", "apps", "deployments", "scale", UPDATE, ("web",)),
        },
    ),
    "metrics of targets that series name": (
        f"{PREDICTIVE}, forEach: {{namespace: a, name: b}}}}",
        (PROCESS - {MEMORY}) | {SHARDS},
    ),
    "scale calls for targets that series name": (
        f"{PREDICTIVE}, forEach: {{namespace: a, name: b, kind: ReplicationController}}}}\n  outputs: [scale]",
        (PROCESS - {MEMORY})
        | {SHARDS}
        | OF_SERIES
        | {
            RoleRule("", "keda.sh", "scaledobjects", "", WATCH),
            RoleRule("", "", "replicationcontrollers", "", GET),
            RoleRule("", "", "replicationcontrollers", "scale", UPDATE),
        },
    ),
    "sizes": (
        "proportional: {resources: {dns: {requests: {cpu: {base: 100m}}}}}",
        PROCESS | {NODES},
    ),
    "sizes of a target": (
        f"proportional: {{resources: {{dns: {{requests: {{cpu: {{base: 100m}}}}}}}}}}\n  targets: [{TARGET}]",
        PROCESS
        | {NODES}
        | OF_TARGETS
        | {
            RoleRule("shop", "apps", "deployments", "", GET, ("web",)),
            RoleRule("shop", "autoscaling.k8s.io", "verticalpodautoscalers", "", WATCH),
        },
    ),
}


@pytest.mark.parametrize(("entry", "expected"), CASES.values(), ids=CASES)
def test_rights_are_those_that_the_entry_uses(entry: str, expected: set[RoleRule]) -> None:
    assert set(rights(entry, PROMETHEUS)) == expected


def test_no_right_to_leases_is_needed_without_leader_election() -> None:
    found = rights(LINEAR, "leaderElection: {enabled: false}\n")
    assert [right for right in found if right.resource == "leases"] == []


def test_rights_follow_the_namespace_and_name_of_the_lease() -> None:
    found = rights(LINEAR, "leaderElection: {namespace: leases, name: mine}\n")
    assert {(right.namespace, right.resource, right.names) for right in found if right.namespace} == {
        ("leases", "leases", ()),
        ("leases", "leases", ("mine",)),
        ("leases", "configmaps", ()),
        ("leases", "configmaps", ("tidewatch-recommender-dns",)),
    }


def test_a_kind_counted_in_the_whole_cluster_needs_no_right_in_a_namespace() -> None:
    narrow = "- {name: a, proportional: {drivers: {services: {perReplica: 5, namespace: shop}}}}\n"
    wide = "- {name: b, proportional: {drivers: {services: {perReplica: 5, selector: app=x}}}}\n"
    configuration = read_configuration(whole(narrow, wide), "recommender.yaml")
    found = rights_of(
        configuration, namespace="tools", resolve=partial(find_resource, BUILT_IN), memory_name=memory_object_name
    )
    assert [right.namespace for right in found if right.resource == "services"] == [""]


def test_a_right_to_all_objects_is_not_narrowed_to_those_that_another_entry_names() -> None:
    usage = "fromUsage: {percentile: 90, margin: 15%}"
    one = f"- {{name: a, resources: {{{usage}}}, targets: [{TARGET}], outputs: [resize]}}\n"
    all_of_shop = f"- {{name: b, resources: {{{usage}, forEach: {{namespaces: [shop]}}}}, outputs: [resize]}}\n"
    configuration = read_configuration(whole(one, all_of_shop, top=PROMETHEUS), "recommender.yaml")
    found = rights_of(
        configuration, namespace="tools", resolve=partial(find_resource, BUILT_IN), memory_name=memory_object_name
    )
    deployments = {right for right in found if right.resource == "deployments"}
    assert deployments == {
        RoleRule("shop", "apps", "deployments", "", GET),
        RoleRule("shop", "apps", "deployments", "", REPLACE),
    }
