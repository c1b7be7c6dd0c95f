"""Prometheus's text format, version 0.0.4, for families that have too many samples for a registry.

This module imports only the standard library, because the readiness sidecar uses it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def family(name: str, about: str, samples: Iterable[str] = (), kind: str = "gauge") -> str:
    """Return the text of a family: its help, its type, and its samples, each a line that `sample` returned."""
    return "".join((f"# HELP {name} {about}\n# TYPE {name} {kind}\n", *samples))


def sample(name: str, labels: str, value: float) -> str:
    """Return the line of a sample; `labels` is the text of the labels, joined by commas, or empty."""
    return f"{name}{{{labels}}} {value!r}\n" if labels else f"{name} {value!r}\n"


def label(name: str, value: str) -> str:
    """Return the text of one label."""
    return f'{name}="{escape_label_value(value)}"'


def escape_label_value(value: str) -> str:
    """Return the value of a label as it stands between its quotes."""
    return value.translate(_ESCAPES)
