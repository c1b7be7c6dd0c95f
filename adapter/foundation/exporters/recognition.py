"""The objects that the series of a known metric describe, recognised by their labels (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapter.foundation.exporters.known_metrics import KnownMetric, MetricSubject
from adapter.foundation.objects.names import is_namespace_name, is_object_name, label_value_problem


@dataclass(frozen=True, slots=True)
class RecognisedMetric:
    """A known metric that Prometheus has, with the labels that a rule uses to find objects."""

    known: KnownMetric
    namespace_label: str | None
    """None for external metrics."""
    object_label: str | None
    """None for external metrics."""
    selector: Mapping[str, str]
    """For external metrics: labels by which an HPA can select one thing, such as a queue; empty if it cannot."""
    unselectable: Mapping[str, str]
    """For external metrics: the other labels of that thing, whose values are not valid in a Kubernetes selector."""


@dataclass(frozen=True, slots=True)
class UnusedMetric:
    """A known metric that Prometheus has but no rule uses."""

    known: KnownMetric
    reason: str
    fix: str


def labels_to_read(known: KnownMetric) -> tuple[str, ...]:
    """Return the labels that identify the series of a metric."""
    return tuple(dict.fromkeys((*known.namespace_labels, *known.object_labels, *known.labels)))


def identifying_labels(known: KnownMetric, groups: Sequence[Mapping[str, str]]) -> RecognisedMetric | UnusedMetric:
    """Return the labels that identify the objects; `groups` are the combinations of `labels_to_read` that occur."""
    if known.subject is MetricSubject.EXTERNAL:
        return _external(known, groups)
    pairs = [(namespace, name) for namespace in known.namespace_labels for name in known.object_labels]
    counts = [sum(names_object(group, namespace, name) for group in groups) for namespace, name in pairs]
    most = max(counts)
    if not most:
        labels = f"{_labels_text(known.namespace_labels)} and {_labels_text(known.object_labels)}"
        return UnusedMetric(
            known, f"its series do not say which object they describe: no labels {labels}", known.repair
        )
    namespace_label, object_label = pairs[counts.index(most)]
    return RecognisedMetric(known, namespace_label, object_label, {}, {})


def _external(known: KnownMetric, groups: Sequence[Mapping[str, str]]) -> RecognisedMetric | UnusedMetric:
    things = [{label: group[label] for label in known.labels if group.get(label)} for group in groups]
    things = [thing for thing in things if thing]
    if not things:
        return UnusedMetric(known, f"its series have no label {_labels_text(known.labels)}", known.repair)
    thing = min(things, key=_example_order)
    unselectable = {label: value for label, value in thing.items() if label_value_problem(value) is not None}
    selector = {label: value for label, value in thing.items() if label not in unselectable}
    return RecognisedMetric(known, None, None, selector, unselectable)


def _example_order(thing: Mapping[str, str]) -> tuple[int, bool, list[str]]:
    """Sort key: things that a selector can name come first, and internal ones (`__consumer_offsets`) come last."""
    unselectable = sum(label_value_problem(value) is not None for value in thing.values())
    return unselectable, any(value.startswith("_") for value in thing.values()), list(thing.values())


def names_object(group: Mapping[str, str], namespace_label: str, object_label: str) -> bool:
    """Return whether the values of these labels are valid names of a namespace and an object of Kubernetes."""
    return is_namespace_name(group.get(namespace_label, "")) and is_object_name(group.get(object_label, ""))


def _labels_text(labels: Sequence[str]) -> str:
    return " or ".join(f"`{label}`" for label in labels)
