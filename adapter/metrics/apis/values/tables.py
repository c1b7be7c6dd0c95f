"""Pod and node usage as a `Table` of meta.k8s.io, which `kubectl get` prints (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from adapter.foundation.objects.durations import format_go_duration
from adapter.foundation.objects.quantities import Format, milli_of, quantity_text
from adapter.foundation.web.http import json_line
from adapter.metrics.apis.values.usage_lists import Pieces, resource_quantity, usage_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.metrics.readings.answers import UsageItem

UNKNOWN = "<unknown>"
"""The text of a cell if one of the containers has no value, because the sum would be too low."""
INCLUDES = ("None", "Metadata", "Object")
"""Contents of a table's rows besides the cells."""


def usage_table(
    version: str,
    resource: str,
    columns: Sequence[str],
    items: Iterable[UsageItem],
    window_seconds: float,
    now: float,
    include: str,
) -> bytes:
    """Return the table in version `v1` or `v1beta1`; `columns` are the resources that are served."""
    window, pieces = format_go_duration(window_seconds), Pieces(window_seconds, now)
    rows = [
        {
            "cells": [item.name, *(_cell(item, column) for column in columns), window],
            "object": _object(version, resource, item, pieces, include),
        }
        for item in items
    ]
    head = {"kind": "Table", "apiVersion": f"meta.k8s.io/{version}", "metadata": {}}
    return json_line({**head, "columnDefinitions": _definitions(resource, columns), "rows": rows})


def _definitions(resource: str, columns: Sequence[str]) -> list[dict[str, object]]:
    described = [("Name", "name", f"Name of the object ({resource}).")]
    described += [(column, "quantity", f"Usage of {column}.") for column in columns]
    described.append(("Window", "duration", "Window over which the values were measured."))
    return [
        {"name": name, "type": "string", "format": form, "description": description, "priority": 0}
        for name, form, description in described
    ]


def _cell(item: UsageItem, resource: str) -> str:
    """Return the usage of all containers: the sum of the quantities that are served for each of them."""
    values = [used.get(resource) for used in item.used.values()]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return UNKNOWN
    if len(known) == 1:
        return resource_quantity(resource, known[0])
    form = Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI
    return quantity_text(sum(map(milli_of, known)), form)


def _object(version: str, resource: str, item: UsageItem, pieces: Pieces, include: str) -> msgspec.Raw | None:
    if include == "None":
        return None
    if include == "Object":
        return msgspec.Raw(usage_object(resource, item, pieces))
    head = f'{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/{version}","metadata":'
    return msgspec.Raw(b"%b%b}" % (head.encode(), pieces.metadata(item)))
