from __future__ import annotations

import pytest

from recommender.kinds.resources.workloads import NO_OWNER, NamespacedPod, ObjectOwner, ObjectOwners, SizedWorkload

OWNERS = ObjectOwners(
    pods={
        ("shop", "web-1-a"): frozenset({ObjectOwner("ReplicaSet", "web-1")}),
        ("shop", "lonely-1-a"): frozenset({ObjectOwner("ReplicaSet", "lonely-1")}),
        ("shop", "unknown-1-a"): frozenset({ObjectOwner("ReplicaSet", "unknown-1")}),
        ("shop", "db-0"): frozenset({ObjectOwner("StatefulSet", "db")}),
        ("shop", "nightly-1-a"): frozenset({ObjectOwner("Job", "nightly-1")}),
        ("shop", "bare"): frozenset({ObjectOwner(NO_OWNER, NO_OWNER)}),
        ("kube-system", "etcd-n1"): frozenset({ObjectOwner("Node", "n1")}),
        ("shop", "twice"): frozenset({ObjectOwner("StatefulSet", "a"), ObjectOwner("StatefulSet", "b")}),
        ("shop", "web-2-a"): frozenset({ObjectOwner("ReplicaSet", "web-2")}),
    },
    replica_sets={
        ("shop", "web-1"): frozenset({ObjectOwner("Deployment", "web")}),
        ("shop", "lonely-1"): frozenset({ObjectOwner(NO_OWNER, NO_OWNER)}),
        ("shop", "web-2"): frozenset({ObjectOwner("Deployment", "web"), ObjectOwner("Rollout", "web")}),
        # Another namespace has the same name.
        ("lab", "unknown-1"): frozenset({ObjectOwner("Deployment", "unknown")}),
    },
    jobs={("shop", "nightly-1"): frozenset({ObjectOwner("CronJob", "nightly")})},
)


@pytest.mark.parametrize(
    ("namespace", "pod", "workload"),
    [
        ("shop", "web-1-a", SizedWorkload("shop", "Deployment", "web")),
        ("shop", "lonely-1-a", SizedWorkload("shop", "ReplicaSet", "lonely-1")),
        ("shop", "unknown-1-a", SizedWorkload("shop", "ReplicaSet", "unknown-1")),
        ("shop", "db-0", SizedWorkload("shop", "StatefulSet", "db")),
        ("shop", "nightly-1-a", SizedWorkload("shop", "CronJob", "nightly")),
        ("shop", "bare", SizedWorkload("shop", "Pod", "bare")),
        ("shop", "never-seen", SizedWorkload("shop", "Pod", "never-seen")),
        ("kube-system", "etcd-n1", SizedWorkload("kube-system", "Pod", "etcd-n1")),
        ("shop", "twice", None),
        ("shop", "web-2-a", None),
    ],
)
def test_a_pod_belongs_to_its_topmost_controller(namespace: str, pod: str, workload: SizedWorkload | None) -> None:
    assert OWNERS.workload_of(NamespacedPod(namespace, pod)) == workload
