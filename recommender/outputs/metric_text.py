"""Labels and text of the recommender's metric families, which are gauges with very many samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from adapter.foundation.web.metric_text import family, label, sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.decisions.record import Record, TargetReference

Samples = dict[str, float]
"""Values by the text of the labels."""


def exposition_of(families: Mapping[str, str], samples: Mapping[str, Samples]) -> bytes:
    """Return the text of all families: `families` maps each name to its help, and `samples` to its samples."""
    return "".join(
        family(name, about, (sample(name, labels, value) for labels, value in samples.get(name, {}).items()))
        for name, about in families.items()
    ).encode()


def recommendation_label(record: Record) -> str:
    """Return the label that all families of recommendations have."""
    return label("recommendation", record.name)


@bounded_cache(32 * MEBIBYTE)
def target_labels(target: TargetReference | None) -> str:
    """Return the labels of a target; their values are empty if there is no target.

    Labels are in the order of their names everywhere, as Prometheus's own libraries write them.
    """
    if target is None:
        return 'target_kind="",target_name="",target_namespace=""'
    parts = (("target_kind", target.kind), ("target_name", target.name), ("target_namespace", target.namespace))
    return ",".join(label(name, value) for name, value in parts)


def labels_of_each_target(record: Record) -> Iterable[str]:
    """Return one set of labels for each target of a record; a record without targets has one set."""
    name = recommendation_label(record)
    return [f"{name},{target_labels(outcome.target)}" for outcome in record.targets] or [
        f"{name},{target_labels(None)}"
    ]
