"""The kinds of node usage by which `daily-peaks` places pods, under the names of crane-scheduler's policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapter.nodes.model.loads import AVG, MAX, WINDOW_NAMES, LoadResource


class UsageName(StrEnum):
    """Names of `spec.priority` and `spec.predicate` of crane's DynamicSchedulerPolicy."""

    CPU_5M = "cpu_usage_avg_5m"
    CPU_1H = "cpu_usage_max_avg_1h"
    CPU_1D = "cpu_usage_max_avg_1d"
    MEMORY_5M = "mem_usage_avg_5m"
    MEMORY_1H = "mem_usage_max_avg_1h"
    MEMORY_1D = "mem_usage_max_avg_1d"


@dataclass(frozen=True, slots=True)
class UsageKind:
    """A statistic of one resource over one window."""

    resource: LoadResource
    window: int
    """An index of `WINDOW_NAMES`."""
    stat: int
    """An index of `STATS`."""

    def __str__(self) -> str:
        of = "peak of five minutes" if self.stat == MAX else "average"
        return f"{self.resource} {WINDOW_NAMES[self.window]} {of}"


def _kinds(resource: LoadResource, *names: UsageName) -> dict[UsageName, UsageKind]:
    windows = (("5m", AVG), ("1h", MAX), ("1d", MAX))
    return {
        name: UsageKind(resource, WINDOW_NAMES.index(window), stat)
        for name, (window, stat) in zip(names, windows, strict=True)
    }


USAGE_KINDS: Final[Mapping[UsageName, UsageKind]] = {
    **_kinds(LoadResource.CPU, UsageName.CPU_5M, UsageName.CPU_1H, UsageName.CPU_1D),
    **_kinds(LoadResource.MEMORY, UsageName.MEMORY_5M, UsageName.MEMORY_1H, UsageName.MEMORY_1D),
}
"""The windows of a resource are ordered from the shortest to the longest."""
USAGE_NAMES: Final = tuple(USAGE_KINDS)
"""The number of a use in `NodeColumns.usage_from` is its index here."""
