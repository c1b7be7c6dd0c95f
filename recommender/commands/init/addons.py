"""Recognises add-ons whose size follows the size of the cluster, and the label of node groups (pure)."""

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
    """Pattern for the name of its Deployment."""
    ratios: str
    """The keys of `linear`, without `min`, as text."""
    source: str
    """The source of the ratios, as the end of a sentence."""
    most: int | None = None
    """The most replicas that its developers recommend; None if they state no limit."""


@dataclass(frozen=True, slots=True)
class SizedAddon:
    """An add-on that runs in this cluster."""

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
"""Labels in which providers store the name of a node's group."""


def addons_of(cluster: SeenCluster) -> list[SizedAddon]:
    """Return the add-ons that the cluster has and that run at present."""
    return [
        SizedAddon(addon, workload, replicas)
        for workload, replicas in sorted(cluster.replicas.items(), key=lambda item: (item[0].namespace, item[0].name))
        for addon in ADDONS
        if workload.kind == "Deployment" and replicas > 0 and addon.names.fullmatch(workload.name)
    ]


def node_group_label(cluster: SeenCluster) -> tuple[str, int] | None:
    """Return the node group label that most nodes have, and how many nodes have it; None if no node has one."""
    counts = Counter(label for labels in cluster.node_labels for label in NODE_GROUP_LABELS if labels.get(label))
    return max(counts.items(), key=lambda item: (item[1], -NODE_GROUP_LABELS.index(item[0])), default=None)
