"""Values of the chart that install the recommender, each set by name."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import yaml

from tests.helm.chart import Release, render

COREDNS: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "kube-system", "name": "coredns"}
GATEWAY: Final = {"apiVersion": "apps/v1", "kind": "StatefulSet", "namespace": "default", "name": "gateway"}
ROLLOUT: Final = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "namespace": "default", "name": "shop"}
POLICY: Final = {"apiVersion": "example.com/v1", "kind": "FleetPolicy", "namespace": "default", "name": "a"}


def configuration(*recommendations: dict[str, Any], **rest: object) -> dict[str, Any]:
    """Return a configuration file as a mapping."""
    head = {"apiVersion": "tidewatch.io/v1alpha1", "kind": "RecommenderConfiguration"}
    return head | rest | {"recommendations": list(recommendations)}


LINEAR: Final[dict[str, Any]] = {
    "name": "coredns",
    "proportional": {"linear": {"coresPerReplica": 256, "nodesPerReplica": 16, "max": 1000000}},
    "targets": [COREDNS],
    "outputs": ["metric", "scale"],
}
COUNTED: Final[dict[str, Any]] = {
    "name": "gateway",
    "proportional": {
        "drivers": {
            "services": {"perReplica": 500, "namespace": "default"},
            "pods": {"perReplica": 100},
            "endpoints": {"perReplica": 10, "selector": "app=web"},
            "query": {"expr": 'sum(rate(requests_total{path!~"<none>"}[5m]))', "perReplica": 3},
        }
    },
    "targets": [GATEWAY, ROLLOUT, POLICY],
}
SIZED_BY_OBJECTS: Final[dict[str, Any]] = {
    "name": "dns-memory",
    "proportional": {
        "resources": {
            "coredns": {
                "requests": {"memory": {"base": "59M", "step": "1030k", "podsAndServicesPerStep": 1000}},
                "limits": {"cpu": {"base": "1"}},
            }
        }
    },
    "targets": [],
    "outputs": ["metric"],
}
PARAMETERS: Final[dict[str, Any]] = {
    "name": "dns",
    "proportional": {
        "configMap": {
            "namespace": "kube-system",
            "name": "dns-autoscaler",
            "defaultParams": {"linear": {"nodesPerReplica": 2}},
        }
    },
    "targets": [COREDNS | {"name": "kube-dns"}],
    "outputs": ["scale"],
}
PREDICTED: Final[dict[str, Any]] = {
    "name": "chat",
    "predictive": {
        "load": "sum(connections)",
        "loadPerReplica": 25000,
        "horizon": "2m",
        "model": "linear",
        "maxReplicas": 40,
    },
    "targets": [GATEWAY | {"name": "chat"}],
    "outputs": ["scale"],
}
EACH: Final[dict[str, Any]] = {
    "name": "tenants",
    "predictive": {
        "load": "sum by (namespace, app) (connections)",
        "loadPerReplica": "1k",
        "horizon": "2m",
        "maxReplicas": 40,
        "forEach": {"namespace": "namespace", "name": "app"},
    },
    "outputs": ["metric", "scale"],
}
EACH_WATCHED: Final = {
    "name": "old-tenants",
    "predictive": EACH["predictive"]
    | {"forEach": {"namespace": "namespace", "name": "app", "kind": "ReplicationController"}},
}
SIZED_CONTAINERS: Final[dict[str, Any]] = {
    "name": "requests",
    "resources": {"fromUsage": {}},
    "targets": [GATEWAY],
    "outputs": ["metric", "resize"],
}
WRITTEN_SIZES: Final[dict[str, Any]] = {
    "name": "dns-sizes",
    "proportional": {"resources": {"coredns": {"requests": {"cpu": {"base": "100m"}}}}, "resize": {"threshold": "5%"}},
    "targets": [COREDNS],
    "outputs": ["metric", "resize"],
}
SIZED_WORKLOADS: Final[dict[str, Any]] = {
    "name": "workloads",
    "resources": {"fromUsage": {}, "forEach": {"namespaces": ["default", "kube-public"]}},
    "outputs": ["resize"],
}
SIZED_EVERYWHERE: Final[dict[str, Any]] = {
    "name": "everywhere",
    "resources": {"fromUsage": {"percentile": 95}, "forEach": {"kind": "StatefulSet", "max": 400}},
    "outputs": ["resize"],
}
STATIC_GROUPS: Final = [{"name": "general", "max": 20, "selector": {"pool": "general"}}]
SCALED_NODES: Final[dict[str, Any]] = {
    "name": "machines",
    "clusterSize": {"nodeGroups": {"clusterAPI": {"namespaces": ["default"], "markMachines": True}}},
    "outputs": ["metric", "scale"],
}
SIZED: Final[dict[str, Any]] = configuration(
    SCALED_NODES,
    {
        "name": "reserve",
        "clusterSize": {
            "nodeGroups": STATIC_GROUPS,
            "expander": "priority",
            "priorities": {"configMap": {"namespace": "kube-public", "name": "order"}},
        },
        "outputs": ["metric", "capacityBuffer"],
        "capacityBuffer": {"namespace": "kube-node-lease", "name": "reserve"},
    },
)
AHEAD: Final[dict[str, Any]] = {
    "name": "ahead",
    "clusterSize": {"nodeGroups": STATIC_GROUPS, "forecasts": ["chat"]},
}
SIZES_OF_TWO_NAMESPACES: Final[dict[str, Any]] = configuration(
    {
        "name": "all",
        "clusterSize": {
            "nodeGroups": {
                "clusterAPI": {"namespaces": ["default", "kube-public"], "markMachines": False},
                "static": STATIC_GROUPS,
            },
            "autoscalerNamespaces": ["kube-node-lease"],
            "expander": ["priority", "least-waste"],
        },
        "outputs": ["scale"],
    },
    {
        "name": "elsewhere",
        "clusterSize": {
            "nodeGroups": {"externalGRPC": {"address": "cloud:8086", "caFile": "/certs/ca.crt", "deleteNodes": True}}
        },
        "outputs": ["scale"],
    },
    # Machines are marked only where sizes are written.
    {"name": "other", "clusterSize": {"nodeGroups": {"clusterAPI": {"namespace": "default", "markMachines": True}}}},
    {
        "name": "labels",
        "clusterSize": {
            "nodeGroups": {"byLabel": {"key": "pool"}},
            "expander": "priority",
            "priorities": {10: ["spot-.*"]},
        },
    },
    COUNTED,
    prometheus={"url": "http://prometheus:9090"},
)
PROMETHEUS: Final = {"url": "http://prometheus:9090"}
BACKENDS: Final[list[dict[str, Any]]] = [
    {"name": "local"} | PROMETHEUS,
    {
        "name": "fleet",
        "url": "https://thanos.example.com",
        "tokenFile": "/etc/tidewatch/fleet/token",
        "headers": {"X-Scope-OrgID": "fleet"},
        "matchers": 'cluster="eu-1"',
        "partialResponse": False,
    },
]
EVERYTHING: Final = configuration(LINEAR, COUNTED, PARAMETERS, prometheus=PROMETHEUS, state="/var/cache/history")
WITHOUT_LEASE: Final = configuration(LINEAR, leaderElection={"enabled": False})

OBJECTS: Final[dict[str, Any]] = configuration(
    LINEAR,
    prometheus=PROMETHEUS,
    recommendationObjects={
        "enabled": True,
        "outputs": ["metric", "scale"],
        "targetKinds": [
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"},
        ],
        "maxPerNamespace": 5,
    },
)
SIZED_WITH_OBJECTS: Final = SIZED | {"recommendationObjects": {"enabled": True}}

CONFIGURATIONS: Final[dict[str, dict[str, Any]]] = {
    "one recommendation": configuration(LINEAR),
    "a text": configuration(LINEAR, state="history"),
    "everything": EVERYTHING,
    "predictions": configuration(PREDICTED, EACH, EACH_WATCHED, prometheus=PROMETHEUS),
    "requests of containers": configuration(SIZED_CONTAINERS, SIZED_WORKLOADS, prometheus=PROMETHEUS),
    "requests of all workloads, and of one that is listed": configuration(
        SIZED_CONTAINERS | {"targets": [COREDNS]}, SIZED_WORKLOADS, prometheus=PROMETHEUS
    ),
    "sizes by the cluster's size": configuration(WRITTEN_SIZES),
    "requests of containers as metrics": configuration(
        SIZED_CONTAINERS | {"outputs": ["metric"]}, SIZED_WORKLOADS | {"outputs": ["metric"]}, prometheus=PROMETHEUS
    ),
    "sizes by the cluster's size as metrics": configuration(
        WRITTEN_SIZES
        | {"outputs": ["metric"], "proportional": {"resources": WRITTEN_SIZES["proportional"]["resources"]}}
    ),
    "requests of all StatefulSets": configuration(SIZED_EVERYWHERE, prometheus=PROMETHEUS),
    "cluster sizes": SIZED,
    "cluster sizes ahead of predictions": configuration(PREDICTED, AHEAD, prometheus=PROMETHEUS),
    "cluster sizes of all namespaces": SIZES_OF_TWO_NAMESPACES,
    "metrics of nothing": configuration(LINEAR | {"targets": [], "outputs": ["metric"]}),
    "sizes by objects": configuration(SIZED_BY_OBJECTS),
    "no recommendation yet": configuration(),
    "without a Lease": WITHOUT_LEASE,
    "a Lease elsewhere": configuration(LINEAR, leaderElection={"namespace": "kube-node-lease", "name": "mine"}),
    "an existing ConfigMap": EVERYTHING,
    "an existing ConfigMap without a Lease": WITHOUT_LEASE,
    "an existing ConfigMap with predictions": configuration(EACH, prometheus=PROMETHEUS),
    "an existing ConfigMap with cluster sizes": SIZED_WITH_OBJECTS,
    "objects of teams": OBJECTS,
    "several backends": configuration(EACH | {"backend": "fleet"}, LINEAR, prometheus=BACKENDS),
}
"""The configuration of the recommender in each case."""

PLURALS: Final = {"Rollout": "rollouts", "FleetPolicy": "fleetpolicies"}
"""Plurals of the kinds above that are not Kubernetes' own."""

SWITCHES: Final[dict[str, Any]] = {
    "metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prom"}}},
    "networkPolicy": {"enabled": True},
    "prometheusRule": {"enabled": True, "labels": {"release": "prom"}},
    "dashboards": {
        "enabled": True,
        "annotations": {"grafana_folder": "Autoscaling"},
        "pages": {"recommender": "https://tidewatch.example.com/page/"},
    },
    "prometheus": {"credentials": {"secret": "c", "token": "token"}},
}

_VALUES: Final[dict[str, dict[str, Any]]] = {
    "one recommendation": {},
    "a text": {"recommender": {"config": "# With a comment.\n" + yaml.safe_dump(CONFIGURATIONS["a text"])}},
    "everything": SWITCHES
    | {
        "networkPolicy": {"enabled": True, "pageFrom": [{"podSelector": {"matchLabels": {"app": "oauth-proxy"}}}]},
        "recommender": {
            "page": {"bindAddress": "0.0.0.0"},
            "extraArguments": ["--dry-run"],
            "shutdownDelaySeconds": 40,
            "podLabels": {"team": "platform", "app.kubernetes.io/component": "other"},
            "podAnnotations": {"note": "1"},
            "extraVolumes": [{"name": "more", "emptyDir": {}}],
            "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"operator": "Exists"}],
            "serviceAccount": {"name": "robot", "annotations": {"note": "1"}},
        },
    },
    "metrics of nothing": {"adapter": {"enabled": False}} | SWITCHES,
    "predictions": {},
    "requests of containers": {},
    "sizes by the cluster's size": {},
    "requests of containers as metrics": {},
    "sizes by the cluster's size as metrics": {},
    "requests of all StatefulSets": {},
    "requests of all workloads, and of one that is listed": {},
    "sizes by objects": {},
    "cluster sizes": {},
    "cluster sizes ahead of predictions": {},
    # As a text, in which a key without a value stays.
    "cluster sizes of all namespaces": {"recommender": {"config": yaml.safe_dump(SIZES_OF_TWO_NAMESPACES)}},
    "objects of teams": {"crds": {"enabled": True}},
    "no recommendation yet": {"metrics": {"podMonitor": {"enabled": True}}},
    "without a Lease": {"recommender": {"replicas": 1}},
    "a Lease elsewhere": {"fullnameOverride": "metrics"},
    "an existing ConfigMap": {
        "recommender": {
            "config": {},
            "existingConfig": "mine",
            "rbac": {
                "targets": [
                    COREDNS | {"scale": True},
                    COREDNS | {"name": "kube-dns", "scale": True},
                    GATEWAY,
                    ROLLOUT,
                    POLICY,
                ],
                "recommendations": ["coredns", "gateway", "dns"],
                "configMaps": [{"namespace": "kube-system", "name": "dns-autoscaler", "create": True}],
                "counts": [{"kind": "services", "namespace": "default"}, {"kind": "pods"}, {"kind": "endpoints"}],
            },
        }
    },
    "an existing ConfigMap without a Lease": {
        "recommender": {
            "config": {},
            "existingConfig": "mine",
            "replicas": 1,
            "rbac": {
                "targets": [COREDNS | {"scale": True}],
                "recommendations": ["coredns"],
                "lease": {"enabled": False},
            },
        }
    },
    "an existing ConfigMap with predictions": {
        "recommender": {
            "config": {},
            "existingConfig": "mine",
            "rbac": {
                "targets": [{"apiVersion": "apps/v1", "kind": "Deployment", "scale": True}],
                "recommendations": [f"tenants-{shard}" for shard in range(32)],
                "nodes": False,
            },
        }
    },
    "an existing ConfigMap with cluster sizes": {
        "recommender": {
            "config": {},
            "existingConfig": "mine",
            "rbac": {
                "recommendations": ["machines", "reserve"],
                "configMaps": [{"namespace": "kube-public", "name": "order"}],
                "nodes": False,
                "recommendationObjects": {"enabled": True},
                "clusterSizes": [
                    {"scale": True, "clusterAPI": {"namespaces": ["default"], "markMachines": True}},
                    {"capacityBuffer": {"namespace": "kube-node-lease", "name": "reserve"}},
                ],
            },
        }
    },
    "several backends": {
        "recommender": {
            "extraVolumes": [{"name": "fleet", "secret": {"secretName": "fleet"}}],
            "extraVolumeMounts": [{"name": "fleet", "mountPath": "/etc/tidewatch/fleet"}],
        }
    },
}
RECOMMENDER_CASES: Final[dict[str, dict[str, Any]]] = {
    case: values | {"recommender": {"enabled": True, "config": CONFIGURATIONS[case]} | values.get("recommender", {})}
    for case, values in _VALUES.items()
}


@cache
def rendered_recommender(case: str) -> Release:
    """Return what Helm renders from a set of values, computed once."""
    return render(RECOMMENDER_CASES[case])
