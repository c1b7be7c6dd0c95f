"""Turns HorizontalPodAutoscalers into facts: what each of them scales, how far, and which metrics it follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.facts.objects import FactError, shared_texts
from adapter.foundation.cluster.facts.pod_selectors import selector_requirements
from adapter.foundation.cluster.values.state import Autoscaler, AutoscalerMetric
from adapter.foundation.objects.integers import INT32_MAX
from adapter.foundation.objects.quantities import QuantityError, parse_quantity
from adapter.foundation.objects.requirements import SelectorError
from adapter.foundation.objects.selectors import Selector

if TYPE_CHECKING:
    from adapter.foundation.cluster.forms.autoscalers import (
        AutoscalerForm,
        AutoscalerSpec,
        MetricForm,
        MetricTargetForm,
        ScalingRulesForm,
    )
    from adapter.foundation.cluster.forms.pods import LabelSelectorForm

_MOST_TOLERANCE_NANOS: Final = INT32_MAX * 10**9
"""The largest tolerance that matters: no number of replicas is more times larger than another one."""


def autoscaler_of(form: AutoscalerForm) -> Autoscaler:
    """Return the HPA. Raises FactError if it does not state what it scales or how far."""
    metadata, spec = form.metadata, form.spec
    namespace = metadata.namespace or "default"
    where = f"HorizontalPodAutoscaler {namespace}/{metadata.name}"
    if not spec.target.kind or not spec.target.name:
        raise FactError(f"{where}: spec.scaleTargetRef has no kind or no name: name the object to scale")
    if spec.max_replicas is None:
        raise FactError(f"{where}: spec.maxReplicas is missing: it is required")
    behavior = spec.behavior
    return Autoscaler(
        namespace=namespace,
        name=metadata.name,
        labels=shared_texts(metadata.labels or {}),
        target_api_version=spec.target.api_version,
        target_kind=spec.target.kind,
        target_name=spec.target.name,
        min_replicas=1 if spec.min_replicas is None else spec.min_replicas,
        max_replicas=spec.max_replicas,
        scale_up_tolerance_ratio=_tolerance(where, "scaleUp", behavior.scale_up if behavior else None),
        scale_down_tolerance_ratio=_tolerance(where, "scaleDown", behavior.scale_down if behavior else None),
        metrics=tuple(found for metric in spec.metrics or () if (found := _metric(metric)) is not None),
        resource_names=_resource_names(spec),
    )


def _tolerance(where: str, direction: str, rules: ScalingRulesForm | None) -> float | None:
    if rules is None or rules.tolerance is None:
        return None
    try:
        nanos = parse_quantity(str(rules.tolerance)).nanos
    except QuantityError as error:
        raise FactError(f"{where}: spec.behavior.{direction}.tolerance: {error}") from error
    # The API server also accepts amounts that no float can hold, such as 1e400.
    return max(-_MOST_TOLERANCE_NANOS, min(nanos, _MOST_TOLERANCE_NANOS)) / 10**9


def _resource_names(spec: AutoscalerSpec) -> tuple[str, ...]:
    sources = [source for each in spec.metrics or () for source in (each.resource, each.container_resource) if source]
    names = {source.name for source in sources if source.name}
    return tuple(sorted(names | ({"cpu"} if spec.cpu_percentage is not None else set())))


def _metric(metric: MetricForm) -> AutoscalerMetric | None:
    source = metric.pods or metric.object or metric.external
    if source is None or source.metric is None or not source.metric.name:
        return None
    described = source.described
    return AutoscalerMetric(
        name=source.metric.name,
        average_milli=None if metric.pods else _average_milli(source.target),
        selector=_selector(source.metric.selector),
        described=None if described is None else (described.api_version, described.kind, described.name),
    )


def _average_milli(target: MetricTargetForm | None) -> int | None:
    if target is None or target.average_value is None:
        return None
    try:
        return parse_quantity(str(target.average_value)).milli_value()
    except QuantityError:
        return None


def _selector(form: LabelSelectorForm | None) -> Selector | None:
    try:
        return None if form is None else Selector(tuple(selector_requirements(form)))
    except SelectorError:
        return None
