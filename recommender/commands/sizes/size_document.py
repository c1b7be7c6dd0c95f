"""Sizes as documents for programs: JSON, YAML, and CSV with a line for each container."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

import yaml

from adapter.foundation.reports.documents import json_text
from adapter.foundation.reports.terminal_escaping import printable
from recommender.decisions.texts.times import rfc3339
from recommender.kinds.resources.size_record import ResourceSize, SizeRecord, SizeStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.commands.sizes.size_reading import Sizes

_AMOUNTS: Final = (
    "request", "limit", "lower", "target", "upper", "interval_low", "interval_high", "recommended_limit", "saves",
)  # fmt: skip


_FORMULAS: Final = ("=", "+", "-", "@")


def size_list(sizes: Sizes) -> dict[str, object]:
    """Return the document of `-o json`."""
    window, settings = sizes.window, sizes.options.settings
    return {
        "apiVersion": "tidewatch.io/v1alpha1",
        "kind": "SizeList",
        "time": rfc3339(window.end),
        "window": {"start": rfc3339(window.start), "end": rfc3339(window.end), "last_seconds": window.seconds},
        "settings": {
            "percentile": None if settings.percentile is None else round(settings.percentile * 100, 6),
            "margin_ratio": settings.margin_ratio,
            "also_with_hpa": sizes.options.also_with_hpa,
        },
        "missing": list(sizes.missing),
        "totals": totals(sizes.records),
        "items": [_item(record) for record in sizes.records],
    }


def totals(records: Iterable[SizeRecord]) -> dict[str, object]:
    """Return how many records have each status, and the total of the known savings."""
    counts = dict.fromkeys((status.value for status in SizeStatus), 0)
    cpu_milli = memory_bytes = 0
    for record in records:
        counts[record.status.value] += 1
        cpu_milli += (record.cpu and record.cpu.saves) or 0
        memory_bytes += (record.memory and record.memory.saves) or 0
    return {"containers": counts, "saves_cpu_milli": cpu_milli, "saves_memory_bytes": memory_bytes}


def as_json(sizes: Sizes) -> str:
    """Return the document, indented."""
    return json_text(size_list(sizes))


def as_yaml(sizes: Sizes) -> str:
    """Return the document in block style."""
    # libyaml is several times as fast, but not every machine has it.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(size_list(sizes), Dumper=dumper, sort_keys=False, allow_unicode=True, width=1000)
    return text.rstrip("\n")


def as_csv(sizes: Sizes) -> str:
    """Return a header line with the names of the columns, and a line for each container; unknown values are empty."""
    rows = [{name: _cell(value) for name, value in _flat(_item(record)).items()} for record in sizes.records]
    written = io.StringIO()
    writer = csv.DictWriter(written, _columns(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue().rstrip("\n")


def _cell(value: object) -> object:
    """Return a value as a spreadsheet shows it: a name that looks like a formula is preceded by an apostrophe."""
    if not isinstance(value, str):
        return value
    return f"'{printable(value)}" if value.startswith(_FORMULAS) else printable(value)


def _item(record: SizeRecord) -> dict[str, object]:
    return {
        "namespace": record.workload.namespace,
        "kind": record.workload.kind,
        "name": record.workload.name,
        "container": record.container,
        "status": record.status.value,
        "message": record.message,
        "replicas": record.replicas,
        "history_seconds": round(record.history_seconds),
        "samples": record.samples,
        "oom_kills": record.oom_kills,
        "cpu": _amounts(record.cpu, "milli"),
        "memory": _amounts(record.memory, "bytes"),
    }


def _amounts(size: ResourceSize | None, unit: str) -> dict[str, int | None] | None:
    if size is None:
        return None
    amounts = (
        size.request, size.limit, size.lower, size.target, size.upper, size.low, size.high, size.recommended_limit,
        size.saves,
    )  # fmt: skip
    return {f"{name}_{unit}": amount for name, amount in zip(_AMOUNTS, amounts, strict=True)}


def _columns() -> list[str]:
    units = (("cpu", "milli"), ("memory", "bytes"))
    names = [f"{resource}_{name}_{unit}" for resource, unit in units for name in _AMOUNTS]
    return [
        "namespace", "kind", "name", "container", "status", "replicas", "history_seconds", "samples", "oom_kills",
        *names, "message",
    ]  # fmt: skip


def _flat(item: Mapping[str, object]) -> dict[str, object]:
    row: dict[str, object] = {}
    for key, value in item.items():
        if key not in {"cpu", "memory"}:
            row[key] = value
        elif isinstance(value, dict):
            row |= {f"{key}_{name}": amount for name, amount in value.items()}
    return row
