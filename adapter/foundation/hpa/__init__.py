"""The HorizontalPodAutoscaler's arithmetic, exact enough to replace the controller.

A simulator, a demo or a test gets the number that kube-controller-manager (autoscaling/v2) writes, with every step that
led to it. Everything is a pure function of plain data: the clock is an argument, and what the controller remembers
between two evaluations is a value that goes in and comes out.

    spec = HPASpec(
        metrics=(PodsMetric("websocket_connections", AverageValue(100_000)),),  # 100 for each pod, in thousandths
        min_replicas=2,
        max_replicas=20,
        behaviour=Behaviour(scale_down=replace(DEFAULT_SCALE_DOWN, stabilization_window_seconds=10)),
    )
    workload = HpaWorkload(spec_replicas=2, status_replicas=2, pods=(Pod("web-0"), Pod("web-1")))
    observed = PodSamples({"web-0": PodSample(150_000), "web-1": PodSample(130_000)})
    decision = evaluate(spec, workload, [observed], history, now=clock())
    decision.desired  # 3
    decision.reason  # DesiredWithinRange
    decision.steps  # metric, largest, stabilized, limited: value and calculation of each
    history = decision.history

An External metric is observed as `Totals((milli, ...))` with one number for each series, and an Object metric as
`Totals` with a single number. All amounts are whole thousandths (`Quantity.milli_value` of `objects/quantities`), and
all times are seconds on one clock. A metric without a value is `Unavailable`; it is never 0. The modules describe the
parts: `replicas` (values for each pod), `totals` (Object and External), `behaviour` (look-back and rates), `evaluation`
(all of it, in order).
"""

from adapter.foundation.hpa.behaviour import LimitReason
from adapter.foundation.hpa.decision import AbleReason, ActiveReason, HpaDecision, HpaStep
from adapter.foundation.hpa.evaluation import evaluate
from adapter.foundation.hpa.history import HpaHistory, PastRecommendation, ScaleEvent
from adapter.foundation.hpa.pods import Pod, PodPhase, PodSample, Readiness
from adapter.foundation.hpa.proposals import HpaWorkload, Observation, PodSamples, Proposal, Totals, Unavailable
from adapter.foundation.hpa.rules import (
    DEFAULT_SCALE_DOWN,
    DEFAULT_SCALE_UP,
    Behaviour,
    PolicyType,
    ScalingPolicy,
    ScalingRules,
    SelectPolicy,
)
from adapter.foundation.hpa.spec import (
    AverageUtilization,
    AverageValue,
    ExternalMetric,
    HPASpec,
    MetricSpec,
    ObjectMetric,
    PodsMetric,
    ResourceMetric,
    Settings,
    Value,
)

__all__ = [
    "DEFAULT_SCALE_DOWN",
    "DEFAULT_SCALE_UP",
    "AbleReason",
    "ActiveReason",
    "AverageUtilization",
    "AverageValue",
    "Behaviour",
    "ExternalMetric",
    "HPASpec",
    "HpaDecision",
    "HpaHistory",
    "HpaStep",
    "HpaWorkload",
    "LimitReason",
    "MetricSpec",
    "ObjectMetric",
    "Observation",
    "PastRecommendation",
    "Pod",
    "PodPhase",
    "PodSample",
    "PodSamples",
    "PodsMetric",
    "PolicyType",
    "Proposal",
    "Readiness",
    "ResourceMetric",
    "ScaleEvent",
    "ScalingPolicy",
    "ScalingRules",
    "SelectPolicy",
    "Settings",
    "Totals",
    "Unavailable",
    "Value",
    "evaluate",
]
