"""Values that people set in the chart, each set by name."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from tests.helm.chart import Release, render

CA: Final = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
RULE: Final = {
    "seriesQuery": 'queue_length{namespace!="",pod!=""}',
    "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
    "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
}
_LABELS: Final = {"namespace": "namespace", "instance": "node", "pod": "pod"}


def _resource_rule(containers: str, nodes: str) -> dict[str, Any]:
    """Return a resource rule as kube-prometheus writes it."""
    return {
        "containerQuery": f"sum by (<<.GroupBy>>) ({containers})",
        "nodeQuery": f"sum by (<<.GroupBy>>) ({nodes})",
        "resources": {"overrides": {label: {"resource": resource} for label, resource in _LABELS.items()}},
        "containerLabel": "container",
    }


def resource_rules(window: str = "3m") -> dict[str, Any]:
    """Return `rules.resource`, with rates over this window."""
    containers, nodes = '{container!="",<<.LabelMatchers>>}', "{<<.LabelMatchers>>}"
    busy = '{mode!="idle",<<.LabelMatchers>>}'
    return {
        "cpu": _resource_rule(
            f"rate(container_cpu_usage_seconds_total{containers}[{window}])",
            f"rate(node_cpu_seconds_total{busy}[{window}])",
        ),
        "memory": _resource_rule(
            f"container_memory_working_set_bytes{containers}",
            f"node_memory_MemTotal_bytes{nodes} - node_memory_MemAvailable_bytes{nodes}",
        ),
        "window": window,
    }


NO_API: Final = {"custom": {"v1beta1": False, "v1beta2": False}, "external": {"v1beta1": False}}
CREDENTIALS: Final = {"ca": "ca.crt", "token": "token", "certificate": "tls.crt", "key": "tls.key"}

CASES: Final[dict[str, dict[str, Any]]] = {
    "defaults": {},
    "everything": {
        "rules": {
            "default": True,
            "custom": [RULE | {"onNoData": 0, "refresh": "10s"}],
            "external": [RULE | {"name": {"as": "yes"}, "backend": "eu"}],
            "prometheus": [
                {"name": "eu", "url": "https://eu:9090", "tokenFile": "/eu/token", "matchers": 'cluster="eu"'}
            ],
        },
        "prometheus": {
            "url": "https://{{ .Release.Name }}-prom",
            "path": "/p",
            "matchers": 'cluster="eu-1",region=~"a|b"',
            "credentials": {"secret": "c"} | CREDENTIALS,
        },
        "metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prom"}}},
        "networkPolicy": {"enabled": True},
        "rbac": {"hpaReader": True, "objectKinds": [{"apiGroups": ["apps"], "resources": ["deployments"]}]},
        "podLabels": {"team": "platform", "app.kubernetes.io/name": "other"},
        "podAnnotations": {"note": "1"},
        "extraArguments": ["--max-answer-age=90s"],
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
        "image": {"digest": "sha256:" + 64 * "a", "pullSecrets": [{"name": "registry"}]},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "nodeSelector": {"kubernetes.io/os": "linux"},
    },
    "no rules": {"rules": {"shipped": []}},
    "basic auth": {"prometheus": {"port": 0, "credentials": {"secret": "c", "username": "u", "password": "p"}}},
    "cert-manager": {"certificates": {"mode": "certManager"}},
    "cert-manager, a company's issuer": {
        "certificates": {"mode": "certManager", "certManager": {"issuerRef": {"kind": "ClusterIssuer", "name": "bank"}}}
    },
    "a given certificate": {"certificates": {"mode": "given", "given": {"secret": "mine", "caBundle": CA}}},
    "rules of one's own": {"rules": {"existing": "my-rules"}},
    "the node's network": {"hostNetwork": {"enabled": True}, "listenPort": 10250, "metrics": {"port": 10251}},
    "the platform's user": {"runAsUser": None},
    "nobody is sent here": {"apiServices": NO_API},
    "resource metrics": {
        "rules": {"resource": resource_rules()},
        "apiServices": {"resource": {"unchecked": True}},
        "rbac": {"hpaReader": True},
    },
    "resource metrics, by rules of one's own": {
        "rules": {"existing": "my-rules"},
        "apiServices": {"resource": {"v1beta1": True, "unchecked": True}},
    },
    "resource metrics, registered by somebody else": {
        "rules": {"resource": resource_rules()},
        "apiServices": {"resource": {"v1beta1": False}},
    },
    "without external metrics": {"apiServices": {"external": {"v1beta1": False}}},
    "one replica": {"replicas": 1, "metrics": {"podMonitor": {"enabled": True}, "service": {"enabled": True}}},
    "names of one's own": {"fullnameOverride": "metrics", "serviceAccount": {"name": "robot"}},
    "rights from elsewhere": {"rbac": {"create": False}, "serviceAccount": {"create": False, "name": "robot"}},
    "all that ships": {
        "rules": {"shipped": ["websocket", "recommendations"]},
        "prometheusRule": {"enabled": True, "labels": {"release": "prom"}},
        "dashboards": {"enabled": True},
    },
    "objects of teams": {"crds": {"enabled": True}},
    "a long end": {"shutdownDelaySeconds": 40},
}


@cache
def rendered(case: str) -> Release:
    """Return what Helm renders from a set of values, computed once."""
    return render(CASES[case])
