"""An installation of the recommender, for the doctor to look at."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from adapter.foundation.reports.lines import CheckStatus, Line
from adapter.foundation.service.flags.parsing import parse_flags
from adapter.foundation.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from recommender.commands.doctor.command import DOCTOR, doctor_settings, run_all_checks
from recommender.configuration.reading import read_configuration
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.record import TargetReference
from recommender.running.memory.memory_document import encode_memory
from recommender.running.memory.store_protocol import stored_name
from tests.recommender.commands.cluster_harness import put_nodes
from tests.recommender.configuration.files import entry, whole
from tests.support.apiserver_kinds import CONFIG_MAPS, LEASES, Kind
from tests.support.fake_apiserver import TOKEN

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.object_apiserver import ObjectApiServer

OK, WARNING, ERROR, UNKNOWN = CheckStatus
NAMESPACE = "monitoring"
COREDNS = TargetReference("apps/v1", "Deployment", "kube-system", "coredns")
TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}]"
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/kube-system/recommended_replicas"
SERIES = (
    'tidewatch_recommended_replicas{recommendation="coredns",target_kind="Deployment",target_name="coredns",'
    'target_namespace="kube-system"}'
)
DRIVEN = "proportional: {drivers: {query: {expr: %s, perReplica: 10}}}"
OF_OTHER = 'recommendation="other",target_kind="Deployment",target_name="coredns",target_namespace="kube-system"'
FOR_EACH = ", forEach: {namespace: namespace, name: app}"
MEMORY = Memory(last=LastValue(3, 1.0, 2.0))


def lease(renewed: float) -> dict[str, Any]:
    at = datetime.fromtimestamp(renewed, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "pod-a", "leaseDurationSeconds": 15, "acquireTime": at, "renewTime": at}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {**spec, "leaseTransitions": 1}}


def memory(content: str, manager: str = "tidewatch-recommender") -> dict[str, Any]:
    labels = {"app.kubernetes.io/managed-by": manager}
    return {"kind": "ConfigMap", "metadata": {"labels": labels}, "data": {"memory.json": content}}


def shard_of_memories(content: bytes) -> dict[str, Any]:
    """Return the ConfigMap of a shard of the memories of targets, with this compressed content."""
    text = base64.b64encode(content).decode()
    return {**memory(""), "data": None, "binaryData": {"memory.json.gz": text}}


def metric(*values: str) -> tuple[int, dict[str, Any]]:
    return 200, {"kind": "ExternalMetricValueList", "items": [{"value": value} for value in values]}


@dataclass
class Installation:
    """A cluster in which all is well, and a doctor that looks at it."""

    server: ObjectApiServer
    folder: Path
    prometheus_url: str

    def __post_init__(self) -> None:
        put_nodes(self.server, 3)
        self.put(LEASES, NAMESPACE, "tidewatch-recommender", lease(time.time()))
        self.put(CONFIG_MAPS, NAMESPACE, stored_name("coredns"), memory(encode_memory("coredns", MEMORY)))
        self.server.answers[METRIC] = metric("3")

    def put(self, kind: Kind, namespace: str, name: str, document: dict[str, Any]) -> None:
        self.server.objects.put(kind, namespace, name, document)

    def text(self, *entries: str) -> str:
        top = f"leaderElection: {{namespace: {NAMESPACE}}}\nprometheus: {{url: '{self.prometheus_url}'}}\n"
        return whole(*(entries or (entry("coredns", TARGETS, "outputs: [metric, scale]"),)), top=top)

    def lines(self, *entries: str, flags: tuple[str, ...] = ()) -> dict[str, Line]:
        """Look at everything and return the lines by their names."""
        config = self.server.kubeconfig(self.folder / "config")
        client = KubernetesClient(from_kubeconfig(str(config)), RequestDeadlines(connect=2.0, silence=2.0, total=4.0))
        configuration = read_configuration(self.text(*entries), "r.yaml")
        settings = doctor_settings(parse_flags(DOCTOR, ["--config=r.yaml", *flags], {}), configuration)
        found = run_all_checks(client, configuration, settings)
        assert len({line.name for line in found}) == len(found)
        assert all(line.fix for line in found if line.status is not OK)
        assert all(TOKEN not in f"{line}" for line in found)
        return {line.name: line for line in found}

    def line(self, name: str, *entries: str) -> Line:
        lines = self.lines(*entries)
        assert name in lines, sorted(lines)
        return lines[name]
