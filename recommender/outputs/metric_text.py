"""Prometheus's text format, version 0.0.4, for families of gauges with very many samples."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.decisions.record import Record, TargetReference

Samples = dict[str, float]
"""Values by the text of the labels."""


def exposition_of(families: Mapping[str, str], samples: Mapping[str, Samples]) -> bytes:
    """Return the text of all families, which are given by name with their help; the samples are given by name."""
    lines: list[str] = []
    for name, text in families.items():
        lines += (f"# HELP {name} {text}", f"# TYPE {name} gauge")
        lines += [f"{name}{{{labels}}} {value!r}" for labels, value in samples.get(name, {}).items()]
    return ("\n".join(lines) + "\n").encode()


def label(name: str, value: str) -> str:
    """Return one label."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return f'{name}="{escaped}"'


def of_recommendation(record: Record) -> str:
    """Return the label that all families of recommendations have."""
    return label("recommendation", record.name)


@lru_cache(maxsize=32_768)
def of_target(target: TargetReference | None) -> str:
    """Return the labels of a target; they are empty where there is none.

    Labels are in the order of their names everywhere, as Prometheus's own libraries write them.
    """
    if target is None:
        return 'target_kind="",target_name="",target_namespace=""'
    parts = (("target_kind", target.kind), ("target_name", target.name), ("target_namespace", target.namespace))
    return ",".join(label(name, value) for name, value in parts)


def of_targets(record: Record) -> Iterable[str]:
    """Return the labels of a record for each of its targets; one set of them if it has none."""
    name = of_recommendation(record)
    return [f"{name},{of_target(outcome.target)}" for outcome in record.targets] or [f"{name},{of_target(None)}"]
