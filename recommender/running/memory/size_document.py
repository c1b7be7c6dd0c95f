"""The memory of a cluster size recommendation inside its document, and back. Pure.

Times are seconds since the Unix epoch. Nodes that a simulation could not remove are not stored: they are simulated
again after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from recommender.cluster_size.model.memory import AskedSize, BackOff, ClusterSizeMemory, RequestedNodes

if TYPE_CHECKING:
    from collections.abc import Iterator

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Time = Annotated[float, msgspec.Meta(ge=0, le=253_402_300_799)]
"""Until the end of the year 9999, the last that RFC 3339 can state."""
_Seconds = Annotated[float, msgspec.Meta(ge=0)]


class _Requested(msgspec.Struct, forbid_unknown_fields=True):
    size: _Count
    since: _Time


class _Asked(msgspec.Struct, forbid_unknown_fields=True):
    size: _Count
    before: _Count
    since: _Time
    removes: bool


class _BackOff(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    until: _Time
    duration_seconds: _Seconds
    failed_at: _Time
    reason: str


class SizeContent(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """The part of the document."""

    unneeded_since: dict[str, _Time] = {}
    last_scale_up: _Time | None = None
    last_delete: _Time | None = None
    last_failure: _Time | None = None
    requested: dict[str, _Requested] = {}
    asked: dict[str, _Asked] = {}
    back_offs: dict[str, _BackOff] = {}
    sizes: dict[str, _Count] = {}
    decided: _Time | None = None
    confirmed: _Time | None = None
    changes: list[_Time] = []


def content_of(memory: ClusterSizeMemory) -> SizeContent:
    """Return what is stored of a memory."""
    return SizeContent(
        unneeded_since=dict(sorted(memory.unneeded_since.items())),
        last_scale_up=memory.last_scale_up,
        last_delete=memory.last_delete,
        last_failure=memory.last_failure,
        requested={name: _Requested(each.size, each.since) for name, each in sorted(memory.requested.items())},
        asked={
            name: _Asked(each.size, each.before, each.since, each.removes)
            for name, each in sorted(memory.asked.items())
        },
        back_offs={
            name: _BackOff(each.until, each.duration_seconds, each.failed_at, each.reason)
            for name, each in sorted(memory.back_offs.items())
        },
        sizes=dict(sorted(memory.sizes.items())),
        decided=memory.decided,
        confirmed=memory.confirmed,
        changes=list(memory.changes),
    )


def size_memory(content: SizeContent) -> ClusterSizeMemory:
    """Return the memory that is stored."""
    return ClusterSizeMemory(
        unneeded_since=content.unneeded_since,
        last_scale_up=content.last_scale_up,
        last_delete=content.last_delete,
        last_failure=content.last_failure,
        requested={name: RequestedNodes(each.size, each.since) for name, each in content.requested.items()},
        asked={
            name: AskedSize(each.size, each.before, each.since, each.removes) for name, each in content.asked.items()
        },
        back_offs={
            name: BackOff(each.until, each.duration_seconds, each.failed_at, each.reason)
            for name, each in content.back_offs.items()
        },
        sizes=content.sizes,
        decided=content.decided,
        confirmed=content.confirmed,
        changes=tuple(content.changes),
    )


def size_numbers(memory: ClusterSizeMemory) -> Iterator[float]:
    """Yield the numbers that must be finite."""
    yield from memory.unneeded_since.values()
    yield from memory.changes
    for each in memory.back_offs.values():
        yield from (each.until, each.duration_seconds, each.failed_at)
    yield from (each.since for each in memory.requested.values())
    yield from (each.since for each in memory.asked.values())
    times = (memory.last_scale_up, memory.last_delete, memory.last_failure, memory.decided, memory.confirmed)
    yield from (time for time in times if time is not None)
