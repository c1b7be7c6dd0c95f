"""The parts of HorizontalPodAutoscalers that are decoded."""

from __future__ import annotations

import msgspec

from adapter.foundation.cluster.forms.objects import QuantityText  # noqa: TC001 - msgspec reads the annotations when it runs
from adapter.foundation.cluster.forms.pods import LabelSelectorForm  # noqa: TC001 - likewise
from adapter.foundation.objects.metadata import ObjectMeta  # noqa: TC001 - likewise


class TargetForm(msgspec.Struct, gc=False, rename={"api_version": "apiVersion"}):
    """`autoscaling/v2 CrossVersionObjectReference`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class MetricName(msgspec.Struct, gc=False):
    """`autoscaling/v2 MetricIdentifier`."""

    name: str = ""
    selector: LabelSelectorForm | None = None


class MetricTargetForm(msgspec.Struct, gc=False, rename={"average_value": "averageValue"}):
    """`autoscaling/v2 MetricTarget`."""

    average_value: QuantityText | None = None


class MetricSource(msgspec.Struct, gc=False, rename={"described": "describedObject"}):
    """The fields that Pods, Object and External metrics share, and the object that an Object metric is about."""

    metric: MetricName | None = None
    target: MetricTargetForm | None = None
    described: TargetForm | None = None


class ResourceSource(msgspec.Struct, gc=False):
    """`autoscaling/v2 ResourceMetricSource` and `ContainerResourceMetricSource`."""

    name: str = ""


class MetricForm(msgspec.Struct, gc=False, rename={"container_resource": "containerResource"}):
    """`autoscaling/v2 MetricSpec`."""

    pods: MetricSource | None = None
    object: MetricSource | None = None
    external: MetricSource | None = None
    resource: ResourceSource | None = None
    container_resource: ResourceSource | None = None


class ScalingRulesForm(msgspec.Struct, gc=False):
    """`autoscaling/v2 HPAScalingRules`."""

    tolerance: QuantityText | None = None


class Behavior(msgspec.Struct, gc=False, rename={"scale_up": "scaleUp", "scale_down": "scaleDown"}):
    """`autoscaling/v2 HorizontalPodAutoscalerBehavior`."""

    scale_up: ScalingRulesForm | None = None
    scale_down: ScalingRulesForm | None = None


class AutoscalerSpec(
    msgspec.Struct,
    gc=False,
    rename={
        "target": "scaleTargetRef",
        "min_replicas": "minReplicas",
        "max_replicas": "maxReplicas",
        "cpu_percentage": "targetCPUUtilizationPercentage",
    },
):
    """`autoscaling/v2 HorizontalPodAutoscalerSpec`; version v1 has the same target and limits."""

    target: TargetForm = msgspec.field(default_factory=TargetForm)
    min_replicas: int | None = None
    max_replicas: int | None = None
    cpu_percentage: int | None = None
    """The CPU target of version v1, which has no `metrics`."""
    metrics: list[MetricForm] | None = None
    behavior: Behavior | None = None


class AutoscalerForm(msgspec.Struct, gc=False):
    """`autoscaling/v2 HorizontalPodAutoscaler`."""

    metadata: ObjectMeta
    spec: AutoscalerSpec = msgspec.field(default_factory=AutoscalerSpec)
