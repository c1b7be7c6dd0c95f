"""The manifests that start cluster-proportional-autoscaler: its flags, its limits, and when the kubelet kills it.

They are as of 2026, read from the named files; the namespace is `kube-system` everywhere. The memory limit is the
manifest's own if that suffices, or else the one that docs/migration-from-cluster-proportional-autoscaler.md names.
"""

from __future__ import annotations

from dataclasses import dataclass

_LINEAR = '{"linear":{"coresPerReplica":256,"nodesPerReplica":16,"preventSinglePointFailure":true}}'
_OF_GARDENER = (
    '{"linear":{"coresPerReplica":256,"nodesPerReplica":16,"min":2,"preventSinglePointFailure":true,'
    '"includeUnschedulableNodes":true}}'
)
_LOGGED = ("--logtostderr=true", "--v=2")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerManifest:
    """The manifest of one distribution."""

    name: str
    arguments: tuple[str, ...]
    cpu_milli: int | None = None
    """The limit on CPU; None for no limit."""
    memory_mib: int | None = None
    """The limit on memory; None for no limit."""
    killed_after_seconds: float | None = None
    """When the kubelet kills a container that has not answered its liveness probe; None without a probe."""


PEER_MANIFESTS = (
    # coredns/helm: charts/coredns/templates/deployment-autoscaler.yaml and values.yaml. Probes after 10 s, three times
    # 5 s. Its memory limit is 10 MiB. The chart makes the ConfigMap; here its parameters are the default.
    PeerManifest(
        name="CoreDNS's chart, RKE2",
        arguments=(
            "--configmap=coredns-autoscaler",
            "--target=Deployment/coredns",
            *_LOGGED,
            f"--default-params={_LINEAR}",
        ),
        cpu_milli=20,
        memory_mib=64,
        killed_after_seconds=25.0,
    ),
    # kubernetes/kubernetes: cluster/addons/dns-horizontal-autoscaler/dns-horizontal-autoscaler.yaml. Requests only.
    PeerManifest(
        name="Kubernetes's add-on",
        arguments=(
            "--configmap=kube-dns-autoscaler",
            "--target=Deployment/kube-dns",
            f"--default-params={_LINEAR}",
            *_LOGGED,
        ),
    ),
    # kubernetes/kops: upup/models/cloudup/resources/addons/coredns.addons.k8s.io. It has requests only.
    PeerManifest(
        name="kOps",
        arguments=(
            "--configmap=coredns-autoscaler",
            "--target=Deployment/coredns",
            f"--default-params={_LINEAR}",
            *_LOGGED,
        ),
    ),
    # gardener/gardener: pkg/component/networking/coredns. It limits memory only.
    PeerManifest(
        name="Gardener",
        arguments=(
            "--configmap=coredns-autoscaler",
            "--target=deployment/coredns",
            f"--default-params={_OF_GARDENER}",
            *_LOGGED,
        ),
        memory_mib=70,
    ),
)
