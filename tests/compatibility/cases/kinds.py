"""Metrics of other kinds than pods: workloads, services, custom resources, nodes; and labels named by a template."""

from __future__ import annotations

from typing import Final

from tests.compatibility.form import Case, Custom

OVERRIDES: Final = Case(
    name="overrides-with-groups",
    rules="""\
rules:
- seriesQuery: 'backlog{exported_namespace!=""}'
  resources:
    overrides:
      exported_namespace: {resource: namespaces}
      deployment: {group: apps, resource: deployment}
      svc: {resource: service}
      ingress: {group: networking.k8s.io, resource: ingresses}
      topic: {group: messaging.example.com, resource: kafkatopic}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
""",
    series="""\
backlog{exported_namespace="shop",deployment="web",partition="0"} 10
backlog{exported_namespace="shop",deployment="web",partition="1"} 11.5
backlog{exported_namespace="shop",deployment="db"} 4
backlog{exported_namespace="shop",svc="front"} 100
backlog{exported_namespace="shop",ingress="front"} 1000
backlog{exported_namespace="shop",topic="orders"} 123456.789
backlog{exported_namespace="other",deployment="web"} 7
""",
    custom={
        "namespaces/backlog": False,
        "deployments.apps/backlog": True,
        "services/backlog": True,
        "ingresses.networking.k8s.io/backlog": True,
        "kafkatopics.messaging.example.com/backlog": True,
    },
    asks=(
        Custom(
            path="namespaces/shop/deployments.apps/web/backlog",
            query='sum(backlog{exported_namespace="shop",deployment="web"}) by (deployment)',
            label="deployment",
            values={"web": "21500m"},
        ),
        Custom(
            path="namespaces/shop/deployments.apps/*/backlog",
            select="tier in (front,back)",
            query='sum(backlog{exported_namespace="shop",deployment=~"web|db"}) by (deployment)',
            label="deployment",
            values={"db": "4", "web": "21500m"},
        ),
        Custom(
            path="namespaces/shop/deployments.apps/*/backlog",
            select="tier=front",
            metrics="partition=1",
            query='sum(backlog{partition="1",exported_namespace="shop",deployment="web"}) by (deployment)',
            label="deployment",
            values={"web": "11500m"},
        ),
        Custom(
            path="namespaces/shop/services/front/backlog",
            query='sum(backlog{exported_namespace="shop",svc="front"}) by (svc)',
            label="svc",
            values={"front": "100"},
        ),
        Custom(
            path="namespaces/shop/ingresses.networking.k8s.io/front/backlog",
            query='sum(backlog{exported_namespace="shop",ingress="front"}) by (ingress)',
            label="ingress",
            values={"front": "1k"},
        ),
        Custom(
            path="namespaces/shop/kafkatopics.messaging.example.com/orders/backlog",
            query='sum(backlog{exported_namespace="shop",topic="orders"}) by (topic)',
            label="topic",
            values={"orders": "123456789m"},
        ),
        Custom(
            path="namespaces/shop/metrics/backlog",
            metrics="deployment",
            query='sum(backlog{deployment!="",exported_namespace="shop"}) by (exported_namespace)',
            label="exported_namespace",
            values={"shop": "25500m"},
        ),
        Custom(path="namespaces/shop/services/back/backlog", status=404),
        Custom(path="namespaces/shop/deployments.apps/*/backlog", select="tier=middle", status=404),
    ),
)

GROUP_TEMPLATE: Final = Case(
    name="template-with-group",
    rules="""\
rules:
- seriesQuery: '{__name__=~"^lag_.*",kube__namespace!=""}'
  resources: {template: "kube_<<.Group>>_<<.Resource>>"}
  metricsQuery: avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
""",
    series="""\
lag_seconds{kube__namespace="shop",kube__pod="web-0",kube_apps_deployment="web"} 2
lag_seconds{kube__namespace="shop",kube__pod="web-1",kube_apps_deployment="web"} 5
lag_seconds{kube__namespace="shop",kube__pod="db-0",kube_apps_statefulset="db",kube_nobody_thing="x"} 9
""",
    # The core group's name is empty, which the template read backwards does not allow for: it makes `kube__namespace`,
    # and finds nothing in it.
    custom={"deployments.apps/lag_seconds": True, "statefulsets.apps/lag_seconds": True},
    asks=(
        Custom(path="namespaces/shop/pods/*/lag_seconds", select="app=web", status=404),
        Custom(
            path="namespaces/shop/deployments.apps/web/lag_seconds",
            query='avg(lag_seconds{kube__namespace="shop",kube_apps_deployment="web"}) by (kube_apps_deployment)',
            label="kube_apps_deployment",
            values={"web": "3500m"},
        ),
    ),
)

RESOURCE_TEMPLATE: Final = Case(
    name="template-with-prefix",
    rules="""\
rules:
- seriesQuery: 'threads{label_namespace!=""}'
  resources: {template: "label_<<.Resource>>", overrides: {kubernetes_pod_name: {resource: pod}}}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
""",
    series="""\
threads{label_namespace="shop",kubernetes_pod_name="web-0",label_service="front",job="x"} 16
threads{label_namespace="shop",kubernetes_pod_name="web-1",label_service="front",job="x"} 24
""",
    custom={"namespaces/threads": False, "pods/threads": True, "services/threads": True},
    asks=(
        Custom(
            path="namespaces/shop/pods/*/threads",
            select="app=web",
            query='sum(threads{label_namespace="shop",kubernetes_pod_name=~"web-0|web-1"}) by (kubernetes_pod_name)',
            label="kubernetes_pod_name",
            values={"web-0": "16", "web-1": "24"},
        ),
        Custom(
            path="namespaces/shop/services/front/threads",
            query='sum(threads{label_namespace="shop",label_service="front"}) by (label_service)',
            label="label_service",
            values={"front": "40"},
        ),
    ),
)

NODES: Final = Case(
    name="nodes",
    rules="""\
rules:
- seriesQuery: 'hardware_watts{node!=""}'
  resources: {overrides: {node: {resource: node}}}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
""",
    series="""\
hardware_watts{node="n1",socket="0"} 80
hardware_watts{node="n1",socket="1"} 95.5
hardware_watts{node="n2",socket="0"} 60
""",
    custom={"nodes/hardware_watts": False},
    asks=(
        Custom(
            path="nodes/n1/hardware_watts",
            query='sum(hardware_watts{node="n1"}) by (node)',
            label="node",
            values={"n1": "175500m"},
        ),
        Custom(
            path="nodes/*/hardware_watts",
            select="zone",
            metrics="socket=0",
            query='sum(hardware_watts{socket="0",node=~"n1|n2"}) by (node)',
            label="node",
            values={"n1": "80", "n2": "60"},
        ),
        Custom(path="nodes/n3/hardware_watts", status=404, query='sum(hardware_watts{node="n3"}) by (node)'),
    ),
)

CLUSTER_SCOPED: Final = Case(
    name="other-kinds-without-a-namespace",
    rules="""\
rules:
- seriesQuery: 'volume_capacity{storageclass!=""}'
  resources: {template: <<.Resource>>}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
""",
    series="""\
volume_capacity{namespace="shop",persistentvolume="v1",storageclass="fast"} 10
volume_capacity{namespace="shop",persistentvolume="v2",storageclass="fast"} 20
volume_capacity{namespace="other",persistentvolume="v3",storageclass="fast"} 5
""",
    # prometheus-adapter lists storage classes as namespaced, and answers for them within namespaces alone. For the
    # other two kinds it answers outside of namespaces alone.
    custom={
        "namespaces/volume_capacity": False,
        "persistentvolumes/volume_capacity": False,
        "storageclasses.storage.k8s.io/volume_capacity": False,
    },
    asks=(
        Custom(
            path="persistentvolumes/v2/volume_capacity",
            query='sum(volume_capacity{persistentvolume="v2"}) by (persistentvolume)',
            label="persistentvolume",
            values={"v2": "20"},
        ),
        Custom(path="storageclasses.storage.k8s.io/fast/volume_capacity", values={"fast": "35"}),
        Custom(
            path="namespaces/shop/storageclasses.storage.k8s.io/fast/volume_capacity",
            query='sum(volume_capacity{namespace="shop",storageclass="fast"}) by (storageclass)',
            label="storageclass",
            values={"fast": "30"},
        ),
        Custom(path="namespaces/blog/storageclasses.storage.k8s.io/fast/volume_capacity", status=404),
        Custom(path="namespaces/shop/persistentvolumes/v2/volume_capacity", values={"v2": "20"}),
        Custom(path="namespaces/other/persistentvolumes/v2/volume_capacity", status=404),
        Custom(path="namespaces/shop/namespaces/shop/volume_capacity", status=404),
        Custom(path="namespaces/shop/storageclasses.storage.k8s.io/*/volume_capacity", status=404, status_before=500),
    ),
)

TWO_LABELS: Final = Case(
    name="two-labels-for-one-kind",
    rules="""\
rules:
- seriesQuery: 'latency_ratio{namespace!=""}'
  resources:
    overrides:
      kubernetes_pod: {resource: pod}
      pod: {resource: pod}
      namespace: {resource: namespace}
  metricsQuery: max(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
""",
    series="""\
latency_ratio{namespace="shop",pod="web-0"} 0.5
""",
    custom={"pods/latency_ratio": True, "namespaces/latency_ratio": False},
    asks=(
        # prometheus-adapter takes either label, by chance; here the one that series have.
        Custom(
            path="namespaces/shop/pods/*/latency_ratio",
            select="app=web",
            query='max(latency_ratio{namespace="shop",pod=~"web-0|web-1"}) by (pod)',
            values={"web-0": "500m"},
        ),
    ),
)

CASES: Final = (OVERRIDES, GROUP_TEMPLATE, RESOURCE_TEMPLATE, NODES, CLUSTER_SCOPED, TWO_LABELS)
