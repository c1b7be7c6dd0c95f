"""The settings of the output resize."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RESIZED_KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet")
"""Whose containers can be resized, of the API group `apps`."""
API_VERSION: Final = "apps/v1"


@dataclass(frozen=True, slots=True)
class ResizeSettings:
    """How the output resize writes the sizes of containers."""

    threshold_ratio: float = 0.1
    """Smaller changes of a size are not written."""
    in_place: bool = True
    """Whether pods are resized where the API server can; otherwise the template of the workload is always written."""
