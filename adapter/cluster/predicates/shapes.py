"""Pods that are interchangeable to the scheduler's filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.cluster.scheduling.constraints import PodScheduling


@dataclass(frozen=True, slots=True, eq=False)
class PodShape:
    """All that a filter looks at in a pod. A snapshot makes one value of each, so shapes are compared by identity."""

    namespace: str
    labels: Mapping[str, str]
    requests: Mapping[str, int]
    """CPU in milli, memory and storage in bytes, others as counts; resources of which the pod asks 0 are absent."""
    scheduling: PodScheduling
    priority: int
    requests_anything: bool
    """Whether the spec asks for anything at all: a pod that does not fits by its count alone."""


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """Why a node cannot take a pod."""

    plugin: str
    """The scheduler's filter plugin, such as `NodeResourcesFit`."""
    reason: str
    """The scheduler's own words, such as `Insufficient cpu`, as `FailedScheduling` counts them."""
    detail: str = ""
    """What exactly, such as the key of the taint; empty if the reason says it all."""
    needs_other_node: bool = True
    """Whether no eviction of pods could help (`UnschedulableAndUnresolvable`)."""
