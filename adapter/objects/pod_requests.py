"""What pods ask for: effective requests and limits, as the scheduler counts them (`component-helpers/resource`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ContainerResources:
    """The CPU of one container; None where the container does not state it."""

    cpu_request_milli: int | None = None
    cpu_limit_milli: int | None = None


@dataclass(frozen=True, slots=True)
class PodResources:
    """What a pod asks for. CPU in milli, memory and storage in bytes, other resources as counts."""

    requests: Mapping[str, int] = field(default_factory=dict)
    """The larger of the sum of containers and sidecars and what initialisation needs at once, or the pod-level values;
    with overhead."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """The limits by the same rule. A resource for which no container has a limit is absent."""
    non_zero_requests: Mapping[str, int] = field(default_factory=dict)
    """`cpu` and `memory`, with 100m and 200 MiB for each container that does not state them."""
    containers: tuple[ContainerResources, ...] = ()
    """The containers without init containers, for predictions per container."""
    overhead_cpu_milli: int = 0
