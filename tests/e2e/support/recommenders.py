"""Recommenders with a real API server: processes with rights of service accounts, and what the audit log shows."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import yaml

from recommender.running.memory.store_protocol import stored_name
from tests.e2e.controlplane.nodes import PATH as NODES
from tests.e2e.controlplane.nodes import NodeSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.e2e.controlplane.audit import AuditEvent
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

LEASE: Final = "tidewatch-recommender"
RBAC: Final = "rbac.authorization.k8s.io"
POOL: Final = "e2e.tidewatch.io/pool"
"""The label of the nodes that a test makes, by which other tests' nodes are not counted."""
_AT_ONCE: Final = 8


def rule(groups: Sequence[str], resources: Sequence[str], verbs: str, *names: str) -> Document:
    """Return an RBAC rule; `verbs` are separated by spaces, and `names` limit the rule to these objects."""
    found: Document = {"apiGroups": list(groups), "resources": list(resources), "verbs": verbs.split()}
    return found | ({"resourceNames": list(names)} if names else {})


def rights(recommendations: Sequence[str], targets: Sequence[str], lease: str = LEASE) -> list[Document]:
    """Return the RBAC rules for the namespace in which the program, its memories and its targets are."""
    memories = [stored_name(name) for name in recommendations]
    return [
        rule(["coordination.k8s.io"], ["leases"], "create"),
        rule(["coordination.k8s.io"], ["leases"], "get update", lease),
        rule([""], ["configmaps"], "create"),
        rule([""], ["configmaps"], "get update", *memories),
        rule(["apps"], ["deployments"], "get", *targets),
        rule(["apps"], ["deployments/scale"], "get update", *targets),
        rule(["autoscaling"], ["horizontalpodautoscalers"], "list watch"),
        rule([""], ["events"], "create"),
    ]


def _is_allowed(cluster: Cluster, user: str, rules: Sequence[Document], namespace: str) -> bool:
    """Return whether the API server knows a binding of these rules already, by the last one of them."""
    if not rules:
        return True
    last = rules[-1]
    resource, _, subresource = last["resources"][0].partition("/")
    wanted = {"group": last["apiGroups"][0], "resource": resource, "subresource": subresource, "verb": last["verbs"][0]}
    wanted |= {"namespace": namespace, "name": last.get("resourceNames", [""])[0]}
    review = cluster.client.create(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": wanted},
        },
    )
    return bool(review["status"]["allowed"])


@contextmanager
def service_account(
    cluster: Cluster,
    namespace: str,
    name: str,
    folder: Path,
    *,
    here: Sequence[Document],
    everywhere: Sequence[Document],
) -> Iterator[Path]:
    """Make a service account with rules for its namespace and for all, and yield a kubeconfig with its token."""
    whole = f"{namespace}-{name}"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    here_metadata = {"name": name, "namespace": namespace}
    version = f"{RBAC}/v1"
    cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here_metadata},
        {"apiVersion": version, "kind": "Role", "metadata": here_metadata, "rules": list(here)},
        {"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": whole}, "rules": list(everywhere)},
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": here_metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": [subject],
        },
        {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": whole},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": whole},
            "subjects": [subject],
        },
    )
    # The account itself asks for nothing here: its requests that are refused are counted.
    user = f"system:serviceaccount:{namespace}:{name}"
    for rules, where in ((everywhere, ""), (here, namespace)):
        cluster.wait_for("the rights", partial(_is_allowed, cluster, user, rules, where))
    token = cluster.service_account_token(namespace, name)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "e2e",
        "clusters": [
            {"name": "e2e", "cluster": {"server": cluster.url, "certificate-authority": str(cluster.ca_file)}}
        ],
        "users": [{"name": "e2e", "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
    }
    path = folder / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    try:
        yield path
    finally:
        for kind in ("clusterrolebindings", "clusterroles"):
            cluster.client.delete(f"/apis/{RBAC}/v1/{kind}/{whole}")


class Pool:
    """The nodes of one test, with 4 cores each."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.name = f"pool-{os.urandom(3).hex()}"
        self._numbers = itertools.count()

    @property
    def selector(self) -> str:
        return f"{POOL}={self.name}"

    def add(self, count: int) -> None:
        """Add so many nodes."""
        specs = [
            NodeSpec(f"{self.name}-{next(self._numbers)}", labels={POOL: self.name}, address="") for _ in range(count)
        ]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(lambda spec: self._cluster.client.create(NODES, _document(spec)), specs))

    def remove(self, *, keep: int = 0) -> None:
        """Delete all but so many nodes."""
        found = self._cluster.client.items(NODES, labelSelector=self.selector)
        paths = [f"{NODES}/{node['metadata']['name']}" for node in found[keep:]]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(self._cluster.client.delete, paths))


def _document(spec: NodeSpec) -> Document:
    document = spec.document()
    # No kubelet of these nodes is ever called.
    document["status"].pop("addresses")
    return document


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment that is scaled, in the namespace of its test."""

    cluster: Cluster
    namespace: str
    name: str

    @property
    def path(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.name}"

    @property
    def reference(self) -> str:
        """Return the entry of `targets` in a configuration."""
        return f"{{apiVersion: apps/v1, kind: Deployment, namespace: {self.namespace}, name: {self.name}}}"

    def create(self, replicas: int = 1) -> None:
        labels = {"app": self.name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "shop/dns:1"}]}}
        self.cluster.client.create(
            self.path.rpartition("/")[0],
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": self.name},
                "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
            },
        )

    @property
    def replicas(self) -> int:
        """Return its desired replicas (`spec.replicas`)."""
        found: int = self.cluster.client.get(self.path)["spec"]["replicas"]
        return found

    def wait_for(self, replicas: int, seconds: float = 30.0) -> None:
        self.cluster.wait_for(f"{replicas} replicas", lambda: self.replicas == replicas, seconds, why_not=self._state)

    def changes(self) -> int:
        """Return how often its specification has been changed; writing an equal value again is not a change."""
        generation: int = self.cluster.client.get(self.path)["metadata"]["generation"]
        return generation - 1

    def writes(self) -> list[AuditEvent]:
        """Return the scale calls that succeeded, in the order of their answers."""
        found = [
            event
            for event in self.cluster.audit_events()
            if event.verb in {"update", "patch"} and event.uri.partition("?")[0] == f"{self.path}/scale"
        ]
        return sorted((event for event in found if event.code == 200), key=lambda event: event.end)

    def writes_of_all_changes(self) -> list[AuditEvent]:
        """Return the scale calls that succeeded, once the log has one for each change: it is written after the change.

        Nobody else may have changed its specification.
        """
        self.cluster.wait_for("a scale call in the log for each change", lambda: len(self.writes()) >= self.changes())
        return self.writes()

    def writers(self) -> list[str]:
        """Return the service accounts that scaled it, in order; consecutive calls of one account count once."""
        return [name for name, _ in itertools.groupby(event.user.rpartition(":")[2] for event in self.writes())]

    def _state(self) -> int:
        return self.replicas


def autoscaler(name: str) -> Document:
    """Return an HPA of a Deployment without a metric to follow."""
    target = {"type": "Utilization", "averageUtilization": 50}
    return {
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 1,
            "maxReplicas": 9,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }
