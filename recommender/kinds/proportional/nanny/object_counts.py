"""Counts nodes or pods from kube-apiserver's metrics in Prometheus's text format.

Source: `kubernetes_client.go` of addon-resizer in kubernetes/autoscaler, branch addon-resizer-release-1.8.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

_FAMILIES: Final = (b"apiserver_resource_objects", b"apiserver_storage_objects", b"etcd_object_counts")
"""Metric families of Kubernetes from 1.34 on, of 1.21 to 1.36, and of older versions; the first with a value counts."""
_SAMPLE: Final = re.compile(rb"(" + b"|".join(_FAMILIES) + rb")\{([^}]*)\}\s+(\S+)")
_LABEL: Final = re.compile(rb'(\w+)="([^"]*)"')


class CountError(ValueError):
    """The metrics do not show the number of objects; the message says why."""


def counted_objects(lines: Iterable[bytes], plural: str) -> int:
    """Return the number of objects of a kind in the core group. Raises CountError."""
    found: dict[bytes, float] = {}
    for line in lines:
        match = _SAMPLE.match(line)
        if match is None:
            continue
        labels = dict(_LABEL.findall(match[2]))
        if labels.get(b"resource") == plural.encode() and not labels.get(b"group"):
            found.setdefault(match[1], _value(match[3]))
    for family in _FAMILIES:
        count = found.get(family, -1.0)
        if math.isfinite(count) and count >= 0:
            return int(count)
    if found:
        raise CountError(f"the number of {plural} is not known to this API server: it will be later")
    raise CountError(f"the number of {plural} is missing: leave out --use-metrics")


def _value(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
