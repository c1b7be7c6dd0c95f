"""Rules for exporters that many clusters run: meshes, ingresses, GPUs, queues, workers; and shares of limits."""

from __future__ import annotations

from typing import Final

from tests.compatibility.form import Case, Custom, External

_PODS = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
_WEB = 'namespace="shop",pod=~"web-0|web-1"'

MESH: Final = Case(
    name="service-mesh",
    rules="""\
rules:
- seriesQuery: >-
    istio_requests_total{reporter="destination",destination_workload!="",destination_workload_namespace!=""}
  resources:
    overrides:
      destination_workload_namespace: {resource: namespace}
      destination_workload: {group: apps, resource: deployment}
      destination_service_name: {resource: service}
  name: {matches: ^(.*)_total$, as: "${1}_per_second"}
  metricsQuery: sum(rate(<<.Series>>{<<.LabelMatchers>>,reporter="destination"}[1m])) by (<<.GroupBy>>)
""",
    series="""\
istio_requests_total{reporter="destination",destination_workload="web",destination_workload_namespace="shop",destination_service_name="front",response_code="200"} 20.0002/s
istio_requests_total{reporter="destination",destination_workload="web",destination_workload_namespace="shop",destination_service_name="front",response_code="503"} 1.2503/s
istio_requests_total{reporter="source",destination_workload="web",destination_workload_namespace="shop",destination_service_name="front",response_code="200"} 20.0002/s
istio_requests_total{reporter="destination",destination_workload="db",destination_workload_namespace="shop",destination_service_name="back",response_code="200"} 3.0005/s
istio_requests_total{reporter="destination",destination_workload="web",destination_workload_namespace="other",destination_service_name="front",response_code="200"} 8.0005/s
""",  # noqa: E501 - as the mesh names its labels
    custom={
        "namespaces/istio_requests_per_second": False,
        "deployments.apps/istio_requests_per_second": True,
        "services/istio_requests_per_second": True,
    },
    asks=(
        Custom(
            path="namespaces/shop/deployments.apps/web/istio_requests_per_second",
            query='sum(rate(istio_requests_total{destination_workload_namespace="shop",destination_workload="web"'
            ',reporter="destination"}[1m])) by (destination_workload)',
            label="destination_workload",
            values={"web": "21250m"},
        ),
        Custom(
            path="namespaces/shop/services/front/istio_requests_per_second",
            metrics="response_code notin (200,201)",
            query='sum(rate(istio_requests_total{response_code!~"200|201",destination_workload_namespace="shop"'
            ',destination_service_name="front",reporter="destination"}[1m])) by (destination_service_name)',
            label="destination_service_name",
            values={"front": "1250m"},
        ),
    ),
)

INGRESS: Final = Case(
    name="ingress-controller",
    rules="""\
rules:
- seriesQuery: 'nginx_ingress_controller_requests{exported_namespace!="",ingress!=""}'
  resources:
    overrides:
      exported_namespace: {resource: "namespace"}
      ingress: {group: "networking.k8s.io", resource: "ingress"}
  name: {matches: "nginx_ingress_controller_requests", as: "requests_per_second"}
  metricsQuery: round(sum(irate(<<.Series>>{<<.LabelMatchers>>}[1m])) by (<<.GroupBy>>), 0.001)
""",
    series="""\
nginx_ingress_controller_requests{exported_namespace="shop",ingress="front",namespace="ingress",pod="c-1",status="200"} 70.0001/s
nginx_ingress_controller_requests{exported_namespace="shop",ingress="front",namespace="ingress",pod="c-2",status="200"} 5.0002/s
""",  # noqa: E501 - as the controller names its labels
    custom={
        "namespaces/requests_per_second": False,
        "ingresses.networking.k8s.io/requests_per_second": True,
    },
    asks=(
        Custom(
            path="namespaces/shop/ingresses.networking.k8s.io/front/requests_per_second",
            query="round(sum(irate(nginx_ingress_controller_requests"
            '{exported_namespace="shop",ingress="front"}[1m])) by (ingress), 0.001)',
            label="ingress",
            values={"front": "75"},
        ),
    ),
)

GPU: Final = Case(
    name="gpus",
    rules="""\
rules:
- seriesQuery: '{__name__=~"^DCGM_FI_DEV_(GPU_UTIL|FB_USED)$",exported_namespace!="",exported_pod!=""}'
  resources:
    overrides:
      exported_namespace: {resource: namespace}
      exported_pod: {resource: pod}
      Hostname: {resource: node}
  name: {matches: ^DCGM_FI_DEV_(.*)$, as: "gpu_$1"}
  metricsQuery: avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
""",
    series="""\
DCGM_FI_DEV_GPU_UTIL{exported_namespace="shop",exported_pod="web-0",gpu="0",Hostname="n1",pod="dcgm-1"} 90
DCGM_FI_DEV_GPU_UTIL{exported_namespace="shop",exported_pod="web-0",gpu="1",Hostname="n1",pod="dcgm-1"} 45
DCGM_FI_DEV_GPU_UTIL{gpu="2",Hostname="n1",pod="dcgm-1"} 0
DCGM_FI_DEV_FB_USED{exported_namespace="shop",exported_pod="web-1",gpu="0",Hostname="n2",pod="dcgm-2"} 16384
""",
    custom={
        f"{kind}/{name}": kind == "pods"
        for name in ("gpu_GPU_UTIL", "gpu_FB_USED")
        for kind in ("pods", "namespaces", "nodes")
    },
    asks=(
        Custom(
            path="namespaces/shop/pods/*/gpu_GPU_UTIL",
            select="app=web",
            query='avg(DCGM_FI_DEV_GPU_UTIL{exported_namespace="shop",exported_pod=~"web-0|web-1"}) by (exported_pod)',
            label="exported_pod",
            values={"web-0": "67500m"},
        ),
        # The card that no pod uses counts for the node.
        Custom(
            path="nodes/n1/gpu_GPU_UTIL",
            query='avg(DCGM_FI_DEV_GPU_UTIL{Hostname="n1"}) by (Hostname)',
            label="Hostname",
            values={"n1": "45"},
        ),
    ),
)

QUEUES: Final = Case(
    name="queues",
    rules="""\
externalRules:
- seriesQuery: 'kafka_consumergroup_lag{topic!=""}'
  resources: {namespaced: false}
  name: {matches: ^(.*)$, as: "${1}_sum"}
  metricsQuery: >-
    sum(max by (topic, partition, consumergroup) (<<.Series>>{<<.LabelMatchers>>})) by (topic, consumergroup)
- seriesQuery: '{__name__=~"^celery_queue_(length|age)$",namespace!=""}'
  resources: {template: <<.Resource>>}
  name: {matches: ^celery_queue_(.*)$, as: "queue_${1}"}
  metricsQuery: max(max_over_time(<<.Series>>{<<.LabelMatchers>>}[2m])) by (queue_name)
""",
    series="""\
kafka_consumergroup_lag{topic="orders",partition="0",consumergroup="mail",replica="a"} 100
kafka_consumergroup_lag{topic="orders",partition="0",consumergroup="mail",replica="b"} 110
kafka_consumergroup_lag{topic="orders",partition="1",consumergroup="mail",replica="a"} 7
kafka_consumergroup_lag{topic="orders",partition="0",consumergroup="bill",replica="a"} 1000
kafka_consumergroup_lag{topic="clicks",partition="0",consumergroup="mail",replica="a"} 20000
celery_queue_length{namespace="shop",queue_name="images"} 12
celery_queue_length{namespace="other",queue_name="images"} 99
celery_queue_age{namespace="shop",queue_name="images"} 61.5
""",
    external=frozenset({"kafka_consumergroup_lag_sum", "queue_length", "queue_age"}),
    asks=(
        External(
            path="shop/kafka_consumergroup_lag_sum",
            select="consumergroup=mail,topic=orders",
            query="sum(max by (topic, partition, consumergroup) (kafka_consumergroup_lag"
            '{consumergroup="mail",topic="orders"})) by (topic, consumergroup)',
            rows=(({"topic": "orders", "consumergroup": "mail"}, "117"),),
        ),
        External(
            path="shop/kafka_consumergroup_lag_sum",
            select="consumergroup in (mail,bill)",
            query="sum(max by (topic, partition, consumergroup) (kafka_consumergroup_lag"
            '{consumergroup=~"bill|mail"})) by (topic, consumergroup)',
            rows=(
                ({"topic": "orders", "consumergroup": "mail"}, "117"),
                ({"topic": "orders", "consumergroup": "bill"}, "1k"),
                ({"topic": "clicks", "consumergroup": "mail"}, "20k"),
            ),
        ),
        # Of replica a alone: 100 + 7.
        External(
            path="shop/kafka_consumergroup_lag_sum",
            select="consumergroup=mail,replica=a,topic=orders",
            query="sum(max by (topic, partition, consumergroup) (kafka_consumergroup_lag"
            '{consumergroup="mail",replica="a",topic="orders"})) by (topic, consumergroup)',
            rows=(({"topic": "orders", "consumergroup": "mail"}, "107"),),
        ),
        External(
            path="shop/queue_length",
            select="queue_name=images",
            query='max(max_over_time(celery_queue_length{queue_name="images",namespace="shop"}[2m])) by (queue_name)',
            rows=(({"queue_name": "images"}, "12"),),
        ),
        External(
            path="shop/queue_age",
            query='max(max_over_time(celery_queue_age{namespace="shop"}[2m])) by (queue_name)',
            rows=(({"queue_name": "images"}, "61500m"),),
        ),
    ),
)

SHARES: Final = Case(
    name="shares-of-limits",
    rules=f"""\
rules:
- seriesQuery: 'phpfpm_active_processes{{namespace!="",pod!=""}}'
  resources: {_PODS}
  name: {{matches: ^phpfpm_active_processes$, as: phpfpm_busy_percent}}
  metricsQuery: >-
    100 * sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
    / sum(phpfpm_total_processes{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
- seriesQuery: 'app_cpu_seconds_total{{namespace!="",pod!=""}}'
  resources: {_PODS}
  name: {{as: app_cpu_of_limit}}
  metricsQuery: >-
    clamp_max(sum(rate(<<.Series>>{{<<.LabelMatchers>>}}[1m])) by (<<.GroupBy>>)
    / (sum(app_cpu_quota{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
    / sum(app_cpu_period{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)), 2)
- seriesQuery: 'app_workers{{namespace!="",pod!=""}}'
  resources: {_PODS}
  name: {{as: app_workers_per_pod}}
  metricsQuery: >-
    (sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>) > 2)
    or (count(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>) * 0)
""",
    series="""\
phpfpm_active_processes{namespace="shop",pod="web-0",pool="www"} 6
phpfpm_active_processes{namespace="shop",pod="web-0",pool="api"} 9
phpfpm_active_processes{namespace="shop",pod="web-1",pool="www"} 2
phpfpm_total_processes{namespace="shop",pod="web-0",pool="www"} 16
phpfpm_total_processes{namespace="shop",pod="web-0",pool="api"} 16
phpfpm_total_processes{namespace="shop",pod="web-1",pool="www"} 16
app_cpu_seconds_total{namespace="shop",pod="web-0"} 0.7505/s
app_cpu_seconds_total{namespace="shop",pod="web-1"} 5.0005/s
app_cpu_quota{namespace="shop",pod="web-0"} 200000
app_cpu_quota{namespace="shop",pod="web-1"} 200000
app_cpu_period{namespace="shop",pod="web-0"} 100000
app_cpu_period{namespace="shop",pod="web-1"} 100000
app_workers{namespace="shop",pod="web-0"} 2
app_workers{namespace="shop",pod="web-1"} 3
""",
    custom={
        f"{kind}/{name}": kind == "pods"
        for name in ("phpfpm_busy_percent", "app_cpu_of_limit", "app_workers_per_pod")
        for kind in ("pods", "namespaces")
    },
    asks=(
        Custom(
            path="namespaces/shop/pods/*/phpfpm_busy_percent",
            select="app=web",
            query=f"100 * sum(phpfpm_active_processes{{{_WEB}}}) by (pod)"
            f" / sum(phpfpm_total_processes{{{_WEB}}}) by (pod)",
            values={"web-0": "46875m", "web-1": "12500m"},
        ),
        # 17 / 48 = 35.4166…
        Custom(
            path="namespaces/shop/metrics/phpfpm_busy_percent",
            query='100 * sum(phpfpm_active_processes{namespace="shop"}) by (namespace)'
            ' / sum(phpfpm_total_processes{namespace="shop"}) by (namespace)',
            label="namespace",
            values={"shop": "35416m"},
        ),
        # 0.7505 / 2; 5.0005 / 2 is above 2
        Custom(
            path="namespaces/shop/pods/*/app_cpu_of_limit",
            select="app=web",
            query=f"clamp_max(sum(rate(app_cpu_seconds_total{{{_WEB}}}[1m])) by (pod)"
            f" / (sum(app_cpu_quota{{{_WEB}}}) by (pod) / sum(app_cpu_period{{{_WEB}}}) by (pod)), 2)",
            values={"web-0": "375m", "web-1": "2"},
        ),
        Custom(
            path="namespaces/shop/pods/*/app_workers_per_pod",
            select="app=web",
            query=f"(sum(app_workers{{{_WEB}}}) by (pod) > 2) or (count(app_workers{{{_WEB}}}) by (pod) * 0)",
            values={"web-0": "0", "web-1": "3"},
        ),
    ),
)

CASES: Final = (MESH, INGRESS, GPU, QUEUES, SHARES)
