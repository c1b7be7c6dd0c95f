"""Writes the rules of `init` as the text of a rule file, with comments about each rule (pure)."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Final

from adapter.foundation.exporters.known_metrics import RATE_WINDOW, MetricSubject, SeriesType
from adapter.foundation.objects.quantities import quantity_of
from adapter.foundation.reports.comments import comment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapter.commands.init.tried_rule import TriedRule
    from adapter.foundation.exporters.recognition import RecognisedMetric, UnusedMetric

_RESOURCES: Final = {
    MetricSubject.POD: "{resource: pod}",
    MetricSubject.SERVICE: "{resource: service}",
    MetricSubject.INGRESS: "{group: networking.k8s.io, resource: ingress}",
}


def rules_text(header: Sequence[str], rules: Sequence[TriedRule], unused: Sequence[UnusedMetric]) -> str:
    """Return a rule file."""
    custom = [rule for rule in rules if rule.metric.known.subject is not MetricSubject.EXTERNAL]
    external = [rule for rule in rules if rule.metric.known.subject is MetricSubject.EXTERNAL]
    lines = [line for text in header for line in comment(text)]
    for key, group in (("rules", custom), ("externalRules", external)):
        if group:
            lines += ["", f"{key}:", *chain.from_iterable(map(_rule, group))]
            # This is the empty line after the last rule.
            lines.pop()
    if unused:
        lines += ["", *comment("Found, but not served:")]
        lines += [line for each in unused for line in comment(unused_text(each))]
    return "\n".join(lines) + "\n"


def unused_text(unused: UnusedMetric) -> str:
    """Return a sentence that says why a metric is not served, and what to do."""
    known = unused.known
    return f"{known.exporter}: {known.series} ({known.meaning}): {unused.reason}: {unused.fix}"


def value_text(rule: TriedRule) -> str:
    """Return a sentence about what the rule returned when it was tried."""
    known = rule.metric.known
    if known.subject is MetricSubject.EXTERNAL:
        return "no value" if rule.value is None else f"{format_quantity(rule.value)}{_of(rule.metric)}"
    if not rule.values:
        return "no value"
    # The largest is the best example of what the metric looks like under load.
    key, largest = max(rule.values.items(), key=lambda item: (item[1], str(item[0])))
    number = len(rule.values)
    place = "the only one" if number == 1 else f"the largest of {number} {known.subject.partition('.')[0]}"
    return f"{format_quantity(largest)} for {key}, {place}"


def format_quantity(value: float) -> str:
    """Return a number as Kubernetes writes it."""
    return quantity_of(value)


def selector_text(selector: Mapping[str, str]) -> str:
    """Return labels in the form of `matchLabels`."""
    return "{" + ", ".join(f"{label}: {json.dumps(value)}" for label, value in selector.items()) + "}"


def _of(metric: RecognisedMetric) -> str:
    return f" with {selector_text(metric.selector)}" if metric.selector else " of all series together"


def _rule(rule: TriedRule) -> Iterator[str]:
    metric, known = rule.metric, rule.metric.known
    yield from comment(f"{known.exporter}: {known.series} is a {known.type.value}: {known.meaning}.", "  ")
    yield from comment(f"Now: {value_text(rule)}.", "  ")
    for note in rule.notes:
        yield from comment(note, "  ")
    if known.subject is MetricSubject.EXTERNAL:
        for note in _external_notes(metric):
            yield from comment(note, "  ")
    yield from _rule_lines(metric)
    yield ""


def _external_notes(metric: RecognisedMetric) -> Iterator[str]:
    if metric.selector:
        yield (
            f"In an HPA: {{type: External, external: {{metric: {{name: {metric.known.name}, selector: "
            f"{{matchLabels: {selector_text(metric.selector)}}}}}, …}}}}. No series says which workload works on it."
        )
    for label, value in metric.unselectable.items():
        yield (
            f"A selector of Kubernetes cannot contain {label}={json.dumps(value)}: to select by it, add the matcher to "
            "a copy of this rule with a name of its own."
        )
    yield "Every namespace may read it. To restrict it, write an override for its namespace, not `namespaced: false`."


def _rule_lines(metric: RecognisedMetric) -> Iterator[str]:
    known = metric.known
    matchers = [known.matchers] if known.matchers else []
    present = [f'{label}!=""' for label in (metric.namespace_label, metric.object_label) if label is not None]
    inside = ",".join([*matchers, *present])
    yield f"  - seriesQuery: '{known.series}{{{inside}}}'" if inside else f"  - seriesQuery: '{known.series}'"
    yield "    resources:"
    if known.subject is MetricSubject.EXTERNAL:
        yield "      namespaced: false"
    else:
        yield "      overrides:"
        yield f"        {metric.namespace_label}: {{resource: namespace}}"
        yield f"        {metric.object_label}: {_RESOURCES[known.subject]}"
    yield f"    name: {{as: {known.name}}}"
    series = f"<<.Series>>{{{','.join([*matchers, '<<.LabelMatchers>>'])}}}"
    value = f"rate({series}[{RATE_WINDOW}])" if known.type is SeriesType.COUNTER else series
    total = "sum" if known.subject is MetricSubject.EXTERNAL else "sum by (<<.GroupBy>>) "
    yield f"    metricsQuery: '{total}({value})'"
