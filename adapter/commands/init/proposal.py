"""The files that `init` writes, with an example HPA for a workload, and what it says about them (pure)."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING, Final

from adapter.commands.init.rules_text import format_quantity, rules_text, unused_text, value_text
from adapter.commands.program import PROGRAM
from adapter.foundation.exporters.known_metrics import MetricSubject
from adapter.foundation.exporters.pod_names import LikelyWorkload, workload_of
from adapter.foundation.reports.comments import comment
from adapter.foundation.reports.counts import agreeing, count_of
from adapter.foundation.reports.terminal_escaping import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from adapter.commands.init.tried_rule import TriedRule
    from adapter.foundation.exporters.recognition import UnusedMetric


RULES_FILE: Final = "rules.yaml"
MOST_EXAMPLES: Final = 50
"""Largest number of workloads for which an HPA is written."""


_KEPT_DIGITS: Final = 2


@dataclass(frozen=True, slots=True)
class ProposedFiles:
    """The files, by name, and the lines that describe them."""

    files: Mapping[str, str]
    lines: tuple[str, ...]


def proposal(
    folder: Path, source: str, moment: str, rules: Sequence[TriedRule], unused: Sequence[UnusedMetric]
) -> ProposedFiles:
    """Return the files to write; `source` is the address of Prometheus, and `moment` the time of the queries."""
    scalable = scalable_workloads(rules)
    shown = scalable[:MOST_EXAMPLES]
    names = file_names(each.workload for each in shown)
    header = (
        f"Rules for what {source} held at {moment}, written by `{PROGRAM} init`. The values are those of that moment.",
        f"Serve them with `{PROGRAM} serve --config {folder / RULES_FILE}` and the same --prometheus flags.",
    )
    files = {RULES_FILE: rules_text(header, rules, unused)}
    lines = [f"{folder / RULES_FILE}: {count_of(len(rules), 'rule')}"]
    lines += [f"  {_served_name(rule)}: {value_text(rule)}" for rule in rules]
    for each in shown:
        name = names[each.workload]
        files[name] = hpa_text(each)
        metric = each.rule.metric.known.name
        workload = each.workload
        lines.append(f"{folder / name}: {workload.kind} {workload.namespace}/{workload.name} by {metric}")
    if len(scalable) > len(shown):
        more = len(scalable) - len(shown)
        lines.append(
            f"{count_of(more, 'more workload')} {agreeing(more, 'has', 'have')} such metrics; "
            f"{MOST_EXAMPLES} are shown as examples"
        )
    lines += [f"not served: {unused_text(each)}" for each in unused]
    return ProposedFiles(files, tuple(map(printable, lines)))


def _served_name(rule: TriedRule) -> str:
    known = rule.metric.known
    return known.name if known.subject is MetricSubject.EXTERNAL else f"{known.subject.value}/{known.name}"


def hpa_text(found: ScalableWorkload) -> str:
    """Return the manifest of an example HPA for the workload."""
    workload, known = found.workload, found.rule.metric.known
    name, namespace = json.dumps(workload.name), json.dumps(workload.namespace)
    target = format_quantity(target_of(found.average))
    have = "pod has" if found.pods == 1 else "pods have"
    average = f"{found.pods} {have} {format_quantity(found.average)} on average"
    size = f"The target of {target} keeps the current size"
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
    """Return a target with two significant digits, at least the average and 0.001; 1 for an average of 0 or less."""
    if average <= 0:
        return 1.0
    milli = math.ceil(average * 1000)
    scale = int(math.pow(10, max(len(str(milli)) - _KEPT_DIGITS, 0)))
    return -(-milli // scale) * scale / 1000


@dataclass(frozen=True, slots=True)
class ScalableWorkload:
    """A workload, and the metric by which an HPA can scale it."""

    workload: LikelyWorkload
    rule: TriedRule
    pods: int
    average: float
    """Mean of the metric over the pods when the rule was tried."""


def scalable_workloads(rules: Sequence[TriedRule]) -> list[ScalableWorkload]:
    """Return each workload with a metric that follows its load and has values, and the first such metric."""
    chosen: dict[LikelyWorkload, ScalableWorkload] = {}
    for rule in rules:
        if not rule.metric.known.scales:
            continue
        by_workload: defaultdict[LikelyWorkload, list[float]] = defaultdict(list)
        for pod, value in rule.values.items():
            workload = workload_of(pod)
            if workload is not None:
                by_workload[workload].append(value)
        for workload, values in by_workload.items():
            found = ScalableWorkload(workload, rule, len(values), sum(values) / len(values))
            chosen.setdefault(workload, found)
    return sorted(chosen.values(), key=lambda each: (each.workload.namespace, each.workload.name, each.workload.kind))


def file_names(workloads: Iterable[LikelyWorkload]) -> dict[LikelyWorkload, str]:
    """Return a file name for each workload; it includes the namespace if several workloads have the same name."""
    listed = list(workloads)
    names: dict[LikelyWorkload, str] = {}
    for workload in listed:
        namesakes = [other for other in listed if other.name == workload.name]
        name = workload.name if len(namesakes) == 1 else f"{workload.namespace}.{workload.name}"
        if len({(other.namespace, other.name) for other in namesakes}) < len(namesakes):
            name = f"{workload.namespace}.{workload.name}.{workload.kind.lower()}"
        # A name may contain a dot: `a.web` is also `web` of the namespace `a`.
        taken = set(names.values())
        numbered = (f"hpa-{name}{suffix}.yaml" for suffix in chain([""], map("-{}".format, count(2))))
        names[workload] = next(each for each in numbered if each not in taken)
    return names
