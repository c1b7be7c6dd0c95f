"""Values that people give the chart, each set by a name."""

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
NO_API: Final = {"custom": {"v1beta1": False, "v1beta2": False}, "external": {"v1beta1": False}}
CREDENTIALS: Final = {"ca": "ca.crt", "token": "token", "certificate": "tls.crt", "key": "tls.key"}

CASES: Final[dict[str, dict[str, Any]]] = {
    "defaults": {},
    "everything": {
        "rules": {"default": True, "custom": [RULE], "external": [RULE | {"name": {"as": "yes"}}]},
        "prometheus": {
            "url": "https://{{ .Release.Name }}-prom",
            "path": "/p",
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
    "without external metrics": {"apiServices": {"external": {"v1beta1": False}}},
    "one replica": {"replicas": 1, "metrics": {"podMonitor": {"enabled": True}, "service": {"enabled": True}}},
    "names of one's own": {"fullnameOverride": "metrics", "serviceAccount": {"name": "robot"}},
    "rights from elsewhere": {"rbac": {"create": False}, "serviceAccount": {"create": False, "name": "robot"}},
    "a long end": {"shutdownDelaySeconds": 40},
}


@cache
def rendered(case: str) -> Release:
    """Return what Helm makes of a set of values; rendered once."""
    return render(CASES[case])
