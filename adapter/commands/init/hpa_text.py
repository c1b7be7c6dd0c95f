"""Writes an example HPA that keeps its workload at the current size until a user chooses a target (pure)."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final

from adapter.commands.init.rules_text import amount
from adapter.foundation.reports.comments import comment

if TYPE_CHECKING:
    from adapter.commands.init.workloads import ScalableWorkload

_KEPT_DIGITS: Final = 2


def hpa_text(found: ScalableWorkload) -> str:
    """Return the manifest of an example HPA for the workload."""
    workload, known = found.workload, found.rule.metric.known
    name, namespace = json.dumps(workload.name), json.dumps(workload.namespace)
    target = amount(target_of(found.average))
    have = "pod has" if found.pods == 1 else "pods have"
    average = f"{found.pods} {have} {amount(found.average)} on average"
    size = f"The target of {target} keeps the present size"
    owner = f"The names of the pods suggest that they belong to {workload.kind} {workload.name}"
    said = (
        f"An example, made from what Prometheus holds. Metric: {known.meaning}. At present {average}.",
        f"{size}: replace it with what one pod can handle, and adjust minReplicas and maxReplicas.",
        f"{owner}: check that, and that no other HPA scales it.",
    )
    lines = [line for text in said for line in comment(text)]
    lines += [
        "apiVersion: autoscaling/v2",
        "kind: HorizontalPodAutoscaler",
        f"metadata: {{name: {name}, namespace: {namespace}}}",
        "spec:",
        f"  scaleTargetRef: {{apiVersion: apps/v1, kind: {workload.kind}, name: {name}}}",
        f"  minReplicas: {found.pods}",
        f"  maxReplicas: {2 * found.pods}",
        "  metrics:",
        "  - type: Pods",
        "    pods:",
        f"      metric: {{name: {known.name}}}",
        f'      target: {{type: AverageValue, averageValue: "{target}"}}',
    ]
    return "\n".join(lines) + "\n"


def target_of(average: float) -> float:
    """Return a target with two significant digits, at least the average and a thousandth; 1 for an average of zero."""
    if average <= 0:
        return 1.0
    milli = math.ceil(average * 1000)
    scale = int(math.pow(10, max(len(str(milli)) - _KEPT_DIGITS, 0)))
    return -(-milli // scale) * scale / 1000
