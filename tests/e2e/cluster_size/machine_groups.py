"""Node groups of Cluster API and CapacityBuffers on a real API server, and a recommender that sizes them.

The definitions are as small as the API server accepts them, in the shape of the real ones: group, versions, names, and
the paths of the scale subresource. No controller of Cluster API runs: tests make the Machines and their nodes.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from demo.machine.files import replace_file
from recommender.configuration.reading import read_configuration
from recommender.configuration.rights import rights_of
from recommender.kinds.cluster_size.node_groups.watched_kinds import CLUSTER_API_GROUP
from recommender.running.memory.store_protocol import memory_object_name
from tests.e2e.controlplane.nodes import PATH as NODES
from tests.e2e.controlplane.nodes import NodeSpec, register
from tests.e2e.support.recommenders import RBAC, rule, service_account
from tests.recommender.configuration.files import entry, whole
from tests.support.recommenders import Recommender, started

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from recommender.kinds.role_rules import RoleRule
    from tests.e2e.controlplane.audit import AuditEvent
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

ACCOUNT: Final = "sizer"
VERSION: Final = f"{CLUSTER_API_GROUP}/v1beta2"
MIN: Final = f"{CLUSTER_API_GROUP}/cluster-api-autoscaler-node-group-min-size"
MAX: Final = f"{CLUSTER_API_GROUP}/cluster-api-autoscaler-node-group-max-size"
PAUSED: Final = f"{CLUSTER_API_GROUP}/paused"
DELETE: Final = f"{CLUSTER_API_GROUP}/delete-machine"
CAPACITY: Final = "capacity.cluster-autoscaler.kubernetes.io"
BUFFERS: Final = "autoscaling.x-k8s.io"
GROUP: Final = "workers"
CORES: Final = 4
_SCALE: Final = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
_KINDS: Final = {
    "machinedeployments": ("MachineDeployment", True),
    "machinesets": ("MachineSet", True),
    "machinepools": ("MachinePool", True),
    "machines": ("Machine", False),
    "clusters": ("Cluster", False),
}
"""The kind of each plural name, and whether it has a scale subresource."""
_ANY: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definitions() -> list[Document]:
    """Return the definitions of Cluster API's kinds in both versions, and that of CapacityBuffers."""
    found = [
        _definition(CLUSTER_API_GROUP, ("v1beta1", "v1beta2"), plural, kind, is_scaled=is_scaled)
        for plural, (kind, is_scaled) in _KINDS.items()
    ]
    return [*found, _definition(BUFFERS, ("v1beta1",), "capacitybuffers", "CapacityBuffer", is_scaled=False)]


def _definition(group: str, versions: tuple[str, ...], plural: str, kind: str, *, is_scaled: bool) -> Document:
    spec = {**_ANY, "properties": {"replicas": {"type": "integer", "format": "int32"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": _ANY}}}
    subresources: Document = {"status": {}} | ({"scale": _SCALE} if is_scaled else {})
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": _approval(group)},
        "spec": {
            "group": group,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == versions[-1],
                    "schema": schema,
                    "subresources": subresources,
                }
                for name in versions
            ],
        },
    }


def _approval(group: str) -> dict[str, str]:
    """Return the annotation that the API server requires for groups that belong to Kubernetes."""
    return {"api-approved.kubernetes.io": "unapproved, for tests"} if group.endswith("k8s.io") else {}


def define(cluster: Cluster) -> None:
    """Define the kinds, and wait until they are served."""
    found = definitions()
    cluster.apply(*found)
    for one in found:
        path = f"{_DEFINITIONS}/{one['metadata']['name']}"

        def established(path: str = path) -> bool:
            conditions = cluster.client.get(path).get("status", {}).get("conditions", ())
            return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

        cluster.wait_for("the definition", established)


def undefine(cluster: Cluster) -> None:
    """Remove the kinds with all of their objects, and wait until they are gone: the next test may define them again."""
    paths = [f"{_DEFINITIONS}/{one['metadata']['name']}" for one in definitions()]
    for one, path in zip(definitions(), paths, strict=True):
        spec = one["spec"]
        # The API server is slow to delete a kind that was never listed.
        cluster.client.find(f"/apis/{spec['group']}/{spec['versions'][-1]['name']}/{spec['names']['plural']}")
        cluster.client.delete(path)
    cluster.wait_for("the end of the definitions", lambda: not any(map(cluster.client.find, paths)))


@dataclass(slots=True)
class MachineGroups:
    """One MachineDeployment in a namespace, and a recommender with exactly the rights of its configuration."""

    cluster: Cluster
    namespace: str
    folder: Path
    stack: ExitStack = field(default_factory=ExitStack)

    def path(self, plural: str, name: str = "") -> str:
        """Return the path of the objects of a kind of Cluster API, or of one of them."""
        return f"/apis/{VERSION}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    @property
    def group(self) -> str:
        """Return the path of the MachineDeployment."""
        return self.path("machinedeployments", GROUP)

    @property
    def name(self) -> str:
        """Return the name of the node group."""
        return f"MachineDeployment/{self.namespace}/{GROUP}"

    @property
    def size(self) -> int:
        """Return `spec.replicas` of the MachineDeployment."""
        found: int = self.cluster.client.get(self.group)["spec"]["replicas"]
        return found

    def create_group(self, replicas: int, *, least: int, most: int) -> None:
        """Make the MachineDeployment, whose nodes have 4 cores, with its Machines and nodes."""
        annotations = {
            MIN: str(least),
            MAX: str(most),
            f"{CAPACITY}/cpu": str(CORES),
            f"{CAPACITY}/memory": "16Gi",
            f"{CAPACITY}/labels": f"pool={self.namespace}",
        }
        self.cluster.client.create(
            self.path("machinedeployments"),
            {
                "apiVersion": VERSION,
                "kind": "MachineDeployment",
                "metadata": {"name": GROUP, "annotations": annotations},
                "spec": {"clusterName": "prod", "replicas": replicas, "template": {"spec": {"clusterName": "prod"}}},
            },
        )
        for number in range(replicas):
            self.add_machine(number)

    def add_machine(self, number: int) -> None:
        """Make a Machine of the group with its node, as the machine's controllers would."""
        node = self.node(number)
        register(self.cluster.client, NodeSpec(node, labels={"pool": self.namespace}))
        self.stack.callback(self.cluster.client.delete, f"{NODES}/{node}")
        owner = self.cluster.client.get(self.group)
        reference = {
            "apiVersion": VERSION,
            "kind": "MachineDeployment",
            "name": GROUP,
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        name = self.machine(number)
        self.cluster.client.create(
            self.path("machines"),
            {
                "apiVersion": VERSION,
                "kind": "Machine",
                "metadata": {"name": name, "ownerReferences": [reference]},
                "spec": {"clusterName": "prod"},
            },
        )
        self.cluster.client.merge(f"{self.path('machines', name)}/status", {"status": {"nodeRef": {"name": node}}})

    def node(self, number: int) -> str:
        """Return the name of a node of the group."""
        return f"{self.namespace}-{number}"

    def machine(self, number: int) -> str:
        """Return the name of the Machine of a node."""
        return f"{GROUP}-{number}"

    def add_pods(self, *names: str, node: str = "", cpu: str = "3") -> None:
        """Make pods for nodes of the group: Pending ones, or ones that are bound to a node of it."""
        for name in names:
            container = {"name": "main", "image": "shop/web:1", "resources": {"requests": {"cpu": cpu}}}
            spec: dict[str, Any] = {"containers": [container], "nodeSelector": {"pool": self.namespace}}
            if node:
                spec["nodeName"] = node
            self.cluster.client.create(
                f"/api/v1/namespaces/{self.namespace}/pods", {"metadata": {"name": name}, "spec": spec}
            )

    def configure(self, settings: Mapping[str, Any], *lines: str, poll_interval: str = "1s") -> None:
        """Write a configuration with one recommendation, which a running recommender reads again."""
        top = (
            f"pollInterval: {poll_interval}\nstate: {self.folder}/state\n"
            f"leaderElection: {{enabled: false, namespace: {self.namespace}}}\n"
        )
        one = entry("workers", *lines, kind=f"clusterSize: {json.dumps(settings)}")
        replace_file(self._configuration, whole(one, top=top))

    def start(self, suffix: str = "") -> Recommender:
        """Start a recommender; return when it has made a decision from facts."""
        kubeconfig = self.folder / f"{ACCOUNT}.kubeconfig"
        if not kubeconfig.exists():
            self._grant()
        log, config = self.folder / f"recommender{suffix}.log", f"--config={self._configuration}"
        found = started(log, "run", config, f"--kubeconfig={kubeconfig}")
        self.stack.enter_context(found.process)
        self.cluster.wait_for("a decision", lambda: found.items() and self.decision(found)["status"] == "ok")
        return found

    def decision(self, program: Recommender) -> dict[str, Any]:
        """Return the current recommendation."""
        return program.items()["workers"]

    def requests(self, *codes: int) -> list[AuditEvent]:
        """Return the recommender's requests with these statuses, in the order of their answers."""
        user = f"system:serviceaccount:{self.namespace}:{ACCOUNT}"
        found = [event for event in self.cluster.audit_events() if event.user == user and event.code in codes]
        return sorted(found, key=lambda event: event.end)

    def refused_requests(self) -> set[str]:
        """Return the requests of the recommender that were refused for lack of rights.

        Events about pods of a test that has just ended are left out: the API server refuses them with the same status,
        since their namespace is being deleted.
        """
        return {
            f"{event.verb} {event.uri.partition('?')[0]}"
            for event in self.requests(403)
            if event.resource != "events" or f"/namespaces/{self.namespace}/" in event.uri
        }

    def written(self) -> list[AuditEvent]:
        """Return the writes of objects of Cluster API, in their order."""
        found = (event for event in self.requests(200) if event.verb in {"update", "patch"})
        return [event for event in found if CLUSTER_API_GROUP in event.uri]

    def writes(self, least: int) -> list[str]:
        """Return the paths of the objects of Cluster API that were written, in their order.

        The log is written after the change, so this waits until it has at least that many.
        """
        self.cluster.wait_for(f"{least} writes in the log", lambda: len(self.written()) >= least)
        paths = (event.uri.partition("?")[0] for event in self.written())
        return [path.rpartition(f"namespaces/{self.namespace}/")[2] for path in paths]

    def _grant(self) -> None:
        configuration = read_configuration(self._configuration.read_text(), str(self._configuration))
        assert not configuration.refused
        rights = rights_of(
            configuration,
            namespace=self.namespace,
            resolve=lambda group, kind: find_resource(BUILT_IN, group, kind),
            memory_name=memory_object_name,
        )
        of = {place: [_rule(right) for right in rights if right.namespace == place] for place in ("", self.namespace)}
        given = service_account(
            self.cluster, self.namespace, ACCOUNT, self.folder, here=of[self.namespace], everywhere=of[""]
        )
        system = [_rule(right) for right in rights if right.namespace == "kube-system"]
        self._grant_in_kube_system(system)
        self.stack.enter_context(given)

    def _grant_in_kube_system(self, rules: list[Document]) -> None:
        metadata = {"name": f"{self.namespace}-{ACCOUNT}", "namespace": "kube-system"}
        version = f"{RBAC}/v1"
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespace}
        role = {"apiGroup": RBAC, "kind": "Role", "name": metadata["name"]}
        self.cluster.apply(
            {"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules},
            {
                "apiVersion": version,
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": role,
                "subjects": [subject],
            },
        )
        for plural in ("rolebindings", "roles"):
            path = f"/apis/{version}/namespaces/kube-system/{plural}/{metadata['name']}"
            self.stack.callback(self.cluster.client.delete, path)

    @property
    def _configuration(self) -> Path:
        return self.folder / "recommender.yaml"


def _rule(right: RoleRule) -> Document:
    resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
    return rule([right.api_group], [resource], " ".join(right.verbs), *right.names)
