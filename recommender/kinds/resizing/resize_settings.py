"""The settings of the output `resize`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RESIZED_KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet")
"""Kinds of the API group `apps` whose containers can be resized."""
API_VERSION: Final = "apps/v1"


@dataclass(frozen=True, slots=True)
class ResizeSettings:
    """How the output `resize` writes the sizes of containers."""

    threshold_ratio: float = 0.1
    """Smaller changes of a size are not written."""
    in_place: bool = True
    """Whether pods are resized in place if the API server supports it; otherwise the template of the workload is always
    written."""
