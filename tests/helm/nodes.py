"""Values of the chart that install the loads of nodes and the second scheduler, each set by name."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import yaml

from tests.helm.chart import Release, render

CONFIGURATION: Final[dict[str, Any]] = {
    "apiVersion": "tidewatch.io/v1alpha1",
    "kind": "SchedulingConfiguration",
    "policies": [{"name": "most-allocated", "weight": 1000}],
}
_EVERYTHING: Final[dict[str, Any]] = {
    "replicas": 3,
    "config": CONFIGURATION,
    "nodeMetrics": ["cpu", "gpu"],
    "extraArguments": ["--tls-min-version=VersionTLS13"],
    "shutdownDelaySeconds": 40,
    "service": {"clusterIP": "10.96.0.20", "annotations": {"note": "1"}},
    "tls": {"secret": "serving", "clientCASecret": "clients"},
    "token": {"secret": "bearer", "key": "t"},
    "podLabels": {"team": "platform", "app.kubernetes.io/component": "other"},
    "podAnnotations": {"note": "1"},
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"operator": "Exists"}],
    "serviceAccount": {"name": "robot", "annotations": {"note": "1"}},
    "scheduler": {
        "enabled": True,
        "name": "by-load",
        "weight": 20,
        "timeout": "1s",
        "clientCertificateSecret": "scheduler-client",
        "image": {"tag": "v1.36.3"},
        "extraArguments": ["--v=3"],
        "podLabels": {"team": "platform"},
        "serviceAccount": {"annotations": {"note": "1"}},
    },
}
_SWITCHES: Final[dict[str, Any]] = {
    "metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prom"}}},
    "networkPolicy": {"enabled": True},
    "prometheusRule": {"enabled": True, "labels": {"release": "prom"}},
    "dashboards": {"enabled": True},
    "prometheus": {"credentials": {"secret": "c", "token": "token"}},
}
_VALUES: Final[dict[str, dict[str, Any]]] = {
    "loads": {},
    "open": {"nodes": {"closed": False}, "networkPolicy": {"nodes": False}},
    "open to Trimaran": {"nodes": {"openWatcher": True}, "networkPolicy": {"nodesFrom": []}},
    "a second scheduler that is open": {"nodes": {"closed": False, "scheduler": {"enabled": True}}},
    "loads alone": {"adapter": {"enabled": False}},
    "everything": _SWITCHES | {"nodes": _EVERYTHING},
    "a text": {"nodes": {"config": "# With a comment.\n" + yaml.safe_dump(CONFIGURATION)}},
    "an existing ConfigMap": {"nodes": {"existingConfig": "mine", "replicas": 1}},
    "a second scheduler": {"nodes": {"scheduler": {"enabled": True}}, "networkPolicy": {"enabled": True}},
    "a second scheduler over TLS": {
        "fullnameOverride": "loads",
        "nodes": {"tls": {"secret": "serving"}, "scheduler": {"enabled": True, "replicas": 1}},
    },
    "some may ask": {
        "networkPolicy": {"enabled": True, "nodesFrom": [{"ipBlock": {"cidr": "10.0.0.0/24"}}]},
        "metrics": {"podMonitor": {"enabled": True}},
    },
    "rights from elsewhere": {
        "nodes": {
            "rbac": {"create": False},
            "serviceAccount": {"create": False},
            "scheduler": {"enabled": True, "rbac": {"create": False}, "serviceAccount": {"create": False}},
        }
    },
}
NODE_CASES: Final[dict[str, dict[str, Any]]] = {
    case: values | {"nodes": {"enabled": True} | values.get("nodes", {})} for case, values in _VALUES.items()
}


@cache
def rendered_nodes(case: str) -> Release:
    """Return what Helm renders from a set of values, computed once."""
    return render(NODE_CASES[case])
