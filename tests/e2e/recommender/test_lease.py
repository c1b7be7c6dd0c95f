"""Electors with the real API server: one Lease, writes under its versions, and what the audit log shows."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.errors import ConflictError, NotFoundError, StatusError
from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
from recommender.leader_election.elector import LeaseElector, since_boot
from recommender.leader_election.lease_events import LeaseEvents
from recommender.leader_election.lease_rules import LeaseTiming
from recommender.leader_election.lease_settings import LeaseSettings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

TIMING = LeaseTiming(lease_seconds=3, renew_deadline_seconds=2.0, retry_seconds=0.3)
NAMES = ("first", "second")
PATIENT = Fence(10.0, lambda _: True)


@pytest.fixture
def clients(cluster: Cluster, namespace: str, tmp_path: Path) -> dict[str, ObjectClient]:
    """Return clients of two service accounts with the rights that an elector and a recommender have."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "elector", "namespace": namespace},
        "rules": [
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "verbs": ["get", "create", "update", "delete"],
            },
            {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "update"]},
        ],
    }
    accounts = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
        for name in NAMES
    ]
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "elector", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "elector"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace} for name in NAMES],
    }
    cluster.apply(role, *accounts, binding)
    made = {}
    for name in NAMES:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "e2e",
            "clusters": [
                {"name": "e2e", "cluster": {"server": cluster.url, "certificate-authority": str(cluster.ca_file)}}
            ],
            "users": [{"name": "e2e", "user": {"token": cluster.service_account_token(namespace, name)}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        }
        path = tmp_path / name
        path.write_text(yaml.safe_dump(config))
        made[name] = ObjectClient(KubernetesClient(from_kubeconfig(str(path))))
    cluster.wait_for("the rights", lambda: may_look(made["second"], namespace))
    return made


def may_look(client: ObjectClient, namespace: str) -> bool:
    try:
        client.get(lease_path(namespace))
    except NotFoundError:
        return True
    except StatusError:
        return False
    return True


def lease_path(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/leader"


@dataclass
class Candidate(LeaseEvents):
    elector: LeaseElector = field(init=False)
    claims: list[tuple[float, float]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def renewed(self, until: float) -> None:
        self.claims.append((since_boot(), until))

    def start(self, client: ObjectClient, namespace: str, name: str) -> threading.Thread:
        settings = LeaseSettings(namespace=namespace, name="leader", identity=name, timing=TIMING)
        self.elector = LeaseElector(client, settings, self)
        thread = threading.Thread(target=self.elector.run, args=(self.stop,), daemon=True)
        thread.start()
        return thread


def test_one_replica_leads_another_takes_over_after_silence_or_at_once_after_a_release(
    cluster: Cluster, namespace: str, clients: dict[str, ObjectClient]
) -> None:
    first, second = Candidate(), Candidate()
    threads = [first.start(clients["first"], namespace, "first")]
    cluster.wait_for("the first leader", first.elector.is_leader)
    threads.append(second.start(clients["second"], namespace, "second"))
    cluster.wait_for("the second's look", lambda: second.elector.holder() == "first")
    # It ends without a word: its Lease runs out.
    first.stop.set()
    cluster.wait_for("the second leader", second.elector.is_leader)
    assert max(until for _, until in first.claims) < min(begin for begin, _ in second.claims)
    spec = cluster.client.get(lease_path(namespace))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"], spec["leaseDurationSeconds"]) == ("second", 1, 3)
    assert second.elector.release(5.0)
    second.stop.set()
    spec = cluster.client.get(lease_path(namespace))["spec"]
    assert (spec.get("holderIdentity", ""), spec["leaseTransitions"], spec["leaseDurationSeconds"]) == ("", 1, 1)
    third = Candidate()
    threads.append(third.start(clients["first"], namespace, "third"))
    cluster.wait_for("the third leader", third.elector.is_leader)
    third.stop.set()
    for thread in threads:
        thread.join(10.0)
    assert_audited(cluster, namespace)


def assert_audited(cluster: Cluster, namespace: str) -> None:
    """Assert that each was allowed what it did and wrote nothing twice; a renewal fails only if another was faster."""
    events = [event for event in cluster.audit_events() if event.resource == "leases" and event.namespace == namespace]
    accounts = {event.user.rpartition(":")[2] for event in events if event.verb == "update"}
    assert accounts == set(NAMES)
    created = [event for event in events if (event.verb, event.code) == ("create", 201)]
    assert len(created) == 1
    assert {event.code for event in events if event.verb == "update"} <= {200, 409}
    assert all("timeout=" in event.uri for event in events if event.verb == "update")


def test_writes_of_an_outdated_resource_version_are_conflicts(
    cluster: Cluster, namespace: str, clients: dict[str, ObjectClient]
) -> None:
    client, path = clients["first"], lease_path(namespace)
    made = client.create(path.rpartition("/")[0], lease(namespace))
    renewed = client.replace(path, {**made, "spec": {"holderIdentity": "a"}}, PATIENT)
    assert renewed["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    with pytest.raises(ConflictError):
        client.replace(path, made, PATIENT)
    with pytest.raises(ConflictError):
        client.delete(path, resource_version=made["metadata"]["resourceVersion"], fence=PATIENT)
    with pytest.raises(ConflictError):
        client.delete(path, uid="00000000-0000-4000-8000-000000000000", fence=PATIENT)
    client.delete(path, uid=made["metadata"]["uid"], fence=PATIENT)
    # A Lease may be created by PUT, but not one that was there before.
    with pytest.raises((ConflictError, NotFoundError)):
        client.replace(path, renewed, PATIENT)
    assert cluster.client.find(path) is None


def test_a_deployment_is_scaled_under_its_version(
    cluster: Cluster, namespace: str, clients: dict[str, ObjectClient]
) -> None:
    labels = {"app": "web"}
    container = {"name": "main", "image": "shop/web:1"}
    deployment: Document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    cluster.apply(deployment)
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"

    def scaled() -> dict[str, Any] | None:
        # The controller writes the status, and every such write is another version.
        scale = clients["first"].get(f"{path}/scale").document
        try:
            return clients["first"].replace(f"{path}/scale", {**scale, "spec": {"replicas": 1}}, PATIENT)
        except ConflictError:
            return None

    after = cluster.wait_for("the scale call", scaled)
    assert after["spec"] == {"replicas": 1}
    assert cluster.client.get(path)["spec"]["replicas"] == 1
    stale = {**after, "metadata": {**after["metadata"], "resourceVersion": "1"}}
    with pytest.raises(ConflictError):
        clients["first"].replace(f"{path}/scale", {**stale, "spec": {"replicas": 2}}, PATIENT)


def lease(namespace: str) -> Document:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "leader", "namespace": namespace},
        "spec": {"holderIdentity": ""},
    }
