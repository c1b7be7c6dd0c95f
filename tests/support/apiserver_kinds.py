"""The kinds of objects that the stand-in for kube-apiserver keeps."""

from __future__ import annotations

from typing import TypeAlias

Kind: TypeAlias = "tuple[str, str]"
"""Group and plural of a kind."""

SECRETS: Kind = ("", "secrets")
APISERVICES: Kind = ("apiregistration.k8s.io", "apiservices")
LEASES: Kind = ("coordination.k8s.io", "leases")
DEPLOYMENTS: Kind = ("apps", "deployments")
STATEFUL_SETS: Kind = ("apps", "statefulsets")
MACHINE_DEPLOYMENTS: Kind = ("cluster.x-k8s.io", "machinedeployments")
MACHINE_POOLS: Kind = ("cluster.x-k8s.io", "machinepools")
MACHINES: Kind = ("cluster.x-k8s.io", "machines")
CLUSTERS: Kind = ("cluster.x-k8s.io", "clusters")
CAPACITY_BUFFERS: Kind = ("autoscaling.x-k8s.io", "capacitybuffers")
CONFIG_MAPS: Kind = ("", "configmaps")
EVENTS: Kind = ("", "events")
KINDS: dict[Kind, str] = {
    SECRETS: "Secret",
    APISERVICES: "APIService",
    LEASES: "Lease",
    DEPLOYMENTS: "Deployment",
    STATEFUL_SETS: "StatefulSet",
    MACHINE_DEPLOYMENTS: "MachineDeployment",
    MACHINE_POOLS: "MachinePool",
    MACHINES: "Machine",
    CLUSTERS: "Cluster",
    CAPACITY_BUFFERS: "CapacityBuffer",
    CONFIG_MAPS: "ConfigMap",
    EVENTS: "Event",
}
