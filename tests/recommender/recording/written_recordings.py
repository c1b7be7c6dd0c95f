"""Recordings that tests write."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from recommender.recording.changes import Changes
from recommender.recording.event_log import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod

START = 1_790_812_800.0
HOUR = 3600.0
Look = tuple[float, "Sequence[ClusterNode]", "Sequence[ClusterPod]"]


def write(folder: Path, looks: Iterable[Look], *, most_bytes: int = 10**9) -> None:
    """Record these observations in one process."""
    log, changes = EventLog(folder, 30 * 24 * HOUR, most_bytes), Changes()
    for time, nodes, pods in looks:
        first: tuple[bytes, ...] = ()
        if log.is_due(time):
            log.begin(time)
            changes = Changes()
            first = (changes.first_line(time),)
        log.append(chain(first, changes.lines(tuple(nodes), tuple(pods), time, time)))
    log.close()
