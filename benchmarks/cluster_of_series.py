"""The made-up content of a cluster's Prometheus: series of cadvisor, kube-state-metrics, nodes, control plane and apps.

Names, labels and the lengths of their values are those of these exporters. The metrics that the default rules of
prometheus-adapter make of them are determined here (`listed`), without any of the adapter's own code.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

SERIES_PER_POD = 185
PODS_PER_APP = 4
PODS_PER_NODE = 50
PROGRAMS = 60
"""How many different programs the apps run; each has metrics of its own."""
OWN_NAMES = 25
CONTROL_PLANE_SERIES = 8_000
NODE_DISKS = 4

_NAMES = Path(__file__).with_name("cluster_names.yaml")
_BUCKETS = ("0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "+Inf")
_HANDLERS = ("/api/v1/orders/{id}", "/api/v1/customers/{id}/addresses")
_THINGS = ("orders", "carts", "payments", "sessions", "messages", "invoices", "deliveries", "uploads", "tokens", "jobs")
_DOINGS = ("created_total", "failed_total", "pending", "age_seconds", "handling_seconds_total")

_OBJECTS = {
    "configmap": "configmaps",
    "deployment": "deployments.apps",
    "horizontalpodautoscaler": "horizontalpodautoscalers.autoscaling",
    "job": "jobs.batch",
    "namespace": "namespaces",
    "node": "nodes",
    "persistentvolumeclaim": "persistentvolumeclaims",
    "pod": "pods",
    "replicaset": "replicasets.apps",
    "secret": "secrets",
    "service": "services",
}
"""Labels of these series that are named after a kind of object, and that kind as a metric's path spells it."""
_OF_PODS_AND_NAMESPACES = ("namespace", "pod")


class Series(NamedTuple):
    """One series of the made-up cluster."""

    name: str
    labels: Mapping[str, str]

    def line(self) -> str:
        """Return the series' line of the exposition; its value does not affect the measurements."""
        labels = ",".join(f'{label}="{value}"' for label, value in self.labels.items())
        return f"{self.name}{{{labels}}} 1\n"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The size of a cluster, and the names of its metrics."""

    pods: int
    names: Mapping[str, Sequence[str]]
    """Names of metrics, by what exposes them."""
    owners: Mapping[str, Sequence[str]]
    """Names of the metrics of kube-state-metrics, by the kind of object that they describe."""

    @classmethod
    def of_series(cls, series: int) -> Cluster:
        """Return a cluster with about this number of series."""
        told = yaml.safe_load(_NAMES.read_text(encoding="utf-8"))
        owners = {kind: names.split() for kind, names in told.pop("owners").items()}
        names = {
            what: [f"{prefix}_{name}" for prefix, names in by_prefix.items() for name in names.split()]
            for what, by_prefix in told.items()
        }
        return cls(max(1, (series - CONTROL_PLANE_SERIES) // SERIES_PER_POD), names, owners)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return -(-self.pods // PODS_PER_NODE)

    def targets(self) -> Iterator[Iterator[Series]]:
        """Yield the series that each scrape target exposes."""
        yield self._control_plane()
        yield self._owners()
        for node in range(self.nodes):
            yield self._node(node)
            pods = range(node * PODS_PER_NODE, min(self.pods, (node + 1) * PODS_PER_NODE))
            yield (series for pod in pods for series in self._cadvisor(pod, node))
            yield (series for pod in pods for series in self._state_of_pod(pod, node))
            yield (series for pod in pods for series in self._app(pod))

    def _cadvisor(self, pod: int, node: int) -> Iterator[Series]:
        target = _target("kube-system", "kubelet", f"10.0.{node}.1:10250", "https-metrics")
        about = {**target, "metrics_path": "/metrics/cadvisor", "node": _node_name(node)}
        owner = {"namespace": _namespace(pod), "pod": _pod_name(pod)}
        uid = _uid(pod).replace("-", "_")
        slice_ = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"
        container = {
            "container": _program(pod),
            "id": f"{slice_}/cri-containerd-{_digest('container', pod)}.scope",
            "image": f"registry.example.com/shop/{_program(pod)}@sha256:{_digest('image', pod)}",
            "name": _digest("container", pod),
        }
        for name in self.names["containers"]:
            yield Series(name, {**about, **container, **owner})
        sandbox = {"id": slice_, "image": "registry.k8s.io/pause:3.9", "name": _digest("sandbox", pod)}
        for name in self.names["pod_sandboxes"]:
            yield Series(name, {**about, **sandbox, "interface": "eth0", **owner})

    def _state_of_pod(self, pod: int, node: int) -> Iterator[Series]:
        about = _target(_namespace(pod), "kube-state-metrics", "10.1.0.7:8443", "https-main")
        about = {**about, "service": "kube-state-metrics", "pod": _pod_name(pod), "uid": _uid(pod)}
        for name in self.names["pods"]:
            more = {"container": _program(pod)} if "container" in name else {"node": _node_name(node)}
            yield Series(name, {**about, **more})

    def _owners(self) -> Iterator[Series]:
        """Yield the series of kube-state-metrics about everything but pods, for each app."""
        for app in range(-(-self.pods // PODS_PER_APP)):
            pod = app * PODS_PER_APP
            about = _target(_namespace(pod), "kube-state-metrics", "10.1.0.7:8443", "https-main")
            for kind, names in self.owners.items():
                # Honoured labels: the object's own `job` and `service` take the place of the target's.
                labels = {**about, kind: f"{_app_name(pod)}-{kind}"}
                yield from (Series(f"kube_{kind}_{name}", labels) for name in names)

    def _node(self, node: int) -> Iterator[Series]:
        about = _target("monitoring", "node-exporter", f"10.0.{node}.1:9100", "https")
        about = {**about, "container": "node-exporter", "pod": f"node-exporter-{_digest('exporter', node)[:5]}"}
        for name in self.names["nodes"]:
            yield Series(name, about)
        for name in self.names["disks"]:
            for disk in range(NODE_DISKS):
                yield Series(name, {**about, "device": f"nvme{disk}n1"})

    def _control_plane(self) -> Iterator[Series]:
        about = _target("default", "apiserver", "10.0.0.2:6443", "https")
        each = -(-CONTROL_PLANE_SERIES // len(self.names["control_plane"]))
        for name in self.names["control_plane"]:
            bucketed = name.endswith("_bucket")
            for number in range(each):
                what = {"resource": f"resources{number // 40}", "verb": f"VERB{number % 40}", "scope": "namespace"}
                bucket = {"le": _BUCKETS[number % len(_BUCKETS)]} if bucketed else {}
                yield Series(name, {**about, **what, **bucket})

    def _app(self, pod: int) -> Iterator[Series]:
        program = _program(pod)
        about = _target(_namespace(pod), _app_name(pod), f"10.2.{pod // 250}.{pod % 250}:8080", "http")
        about = {**about, "container": program, "pod": _pod_name(pod)}
        for name in self.names["apps"]:
            yield Series(name, about)
        for name in own_names(program):
            yield Series(name, about)
        for handler in _HANDLERS:
            for bucket in _BUCKETS:
                labels = {**about, "handler": handler, "method": "GET", "le": bucket}
                yield Series("http_request_duration_seconds_bucket", labels)


def own_names(program: str) -> Iterator[str]:
    """Yield the names of the metrics that only one program has."""
    for number in range(OWN_NAMES):
        thing = _THINGS[number % len(_THINGS)]
        yield f"{program.replace('-', '_')}_{thing}_{_DOINGS[number // len(_DOINGS)]}"


def listed(every: Iterable[Series]) -> frozenset[str]:
    """Return the resources that prometheus-adapter's default rules list of these series: `pods/http_requests`, …."""
    labels_of: dict[str, set[str]] = defaultdict(set)
    for series in every:
        labels_of[series.name] |= series.labels.keys()
    return frozenset(resource for name, labels in labels_of.items() for resource in _listed(name, labels))


def _listed(name: str, labels: set[str]) -> Iterator[str]:
    if "namespace" not in labels:
        return
    if name.startswith("container_"):
        kinds = [_OBJECTS[label] for label in _OF_PODS_AND_NAMESPACES]
        short = re.sub("(_seconds)?_total$", "", name.removeprefix("container_"))
    else:
        kinds = [_OBJECTS[label] for label in labels if label in _OBJECTS]
        short = re.sub("(_seconds)?_total$", "", name)
    yield from (f"{kind}/{short}" for kind in kinds)


def _target(namespace: str, job: str, instance: str, endpoint: str) -> dict[str, str]:
    """Return the labels that the Prometheus Operator gives to a scrape target."""
    return {"endpoint": endpoint, "instance": instance, "job": job, "namespace": namespace, "service": job}


def _namespace(pod: int) -> str:
    return f"team-{pod // PODS_PER_APP % 40:02d}-production"


def _app_name(pod: int) -> str:
    return f"{_program(pod)}-{pod // PODS_PER_APP:04d}"


def _program(pod: int) -> str:
    return f"program-{pod // PODS_PER_APP % PROGRAMS:02d}"


def _pod_name(pod: int) -> str:
    return f"{_app_name(pod)}-{_digest('template', pod // PODS_PER_APP)[:10]}-{_digest('pod', pod)[:5]}"


def _node_name(node: int) -> str:
    return f"ip-10-0-{node}-1.eu-central-1.compute.internal"


def _uid(pod: int) -> str:
    digest = _digest("uid", pod)
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))


def _digest(what: str, number: int) -> str:
    return hashlib.sha256(f"{what} {number}".encode()).hexdigest()
