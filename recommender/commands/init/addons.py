"""Add-ons whose size follows the size of the cluster, and node groups by labels (pure)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from adapter.foundation.exporters.pod_names import LikelyWorkload
    from recommender.commands.init.seen_cluster import SeenCluster


@dataclass(frozen=True, slots=True)
class KnownAddon:
    """An add-on, and the ratios that its developers recommend."""

    names: re.Pattern[str]
    """Names of its Deployment."""
    ratios: str
    """Keys of `linear`, without `min`."""
    source: str
    """The source of the ratios, as the end of a sentence."""
    most: int | None = None
    """Most replicas that its developers recommend."""


@dataclass(frozen=True, slots=True)
class SizedAddon:
    """An add-on of this cluster."""

    addon: KnownAddon
    workload: LikelyWorkload
    replicas: int


ADDONS: Final = (
    KnownAddon(
        re.compile(r"(?:.+-)?coredns|kube-dns"),
        "coresPerReplica: 256, nodesPerReplica: 16, preventSinglePointFailure: true, includeUnschedulableNodes: true",
        "the defaults of Kubernetes's own dns-horizontal-autoscaler",
    ),
    KnownAddon(
        re.compile(r"calico-typha"),
        "nodesPerReplica: 200, preventSinglePointFailure: true",
        "the documentation of Calico: one Typha for each 200 nodes, in production at least three, and at most 20",
        most=20,
    ),
)
NODE_GROUP_LABELS: Final = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "kops.k8s.io/instancegroup",
    "doks.digitalocean.com/node-pool",
    "lke.linode.com/pool-id",
    "k8s.scaleway.com/pool-name",
    "oke.oraclecloud.com/pool.name",
)
"""Labels that providers set to the name of a node's group."""


def addons_of(cluster: SeenCluster) -> list[SizedAddon]:
    """Return the add-ons that the cluster has and that run at present."""
    return [
        SizedAddon(addon, workload, replicas)
        for workload, replicas in sorted(cluster.replicas.items(), key=lambda item: (item[0].namespace, item[0].name))
        for addon in ADDONS
        if workload.kind == "Deployment" and replicas > 0 and addon.names.fullmatch(workload.name)
    ]


def node_group_label(cluster: SeenCluster) -> tuple[str, int] | None:
    """Return the label that most nodes have, and of how many nodes; None if no node has one."""
    counts = Counter(label for labels in cluster.node_labels for label in NODE_GROUP_LABELS if labels.get(label))
    return max(counts.items(), key=lambda item: (item[1], -NODE_GROUP_LABELS.index(item[0])), default=None)
