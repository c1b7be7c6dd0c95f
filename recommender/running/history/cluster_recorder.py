"""Records which nodes and pods there are, for replays. A failure to record never affects a decision."""

from __future__ import annotations

import logging
import threading
from itertools import chain
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import ClusterState, Unknown
from adapter.foundation.service.runtime.logs import StateLog
from recommender.recording.changes import Changes
from recommender.recording.event_log import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.time.clock import Clock
    from adapter.foundation.time.pace import Pace

_log = logging.getLogger(__name__)

RECORD_SECONDS: Final = 10.0
"""Seconds between two looks at the cluster; a pod that lives for less time may be missing from the recording."""


class ClusterRecorder:
    """Appends the changes of the cluster to a recording, each time that `record` is called."""

    def __init__(self, cluster: Callable[[], ClusterState], folder: Path, pace: Pace, clock: Clock) -> None:
        self._cluster = cluster
        self._folder = folder
        self._pace = pace
        self._clock = clock
        self._writing = threading.Lock()
        self._log: EventLog | None = None
        self._changes = Changes()
        self._keep_seconds: float | None = None
        self._states = StateLog(_log)

    def record(self, keep_seconds: float | None) -> None:
        """Append the changes since the last call; recordings are kept for `keep_seconds`. None ends the recording."""
        with self._writing:
            if keep_seconds != self._keep_seconds:
                self._end()
                self._keep_seconds = keep_seconds
            if keep_seconds is None:
                return
            try:
                self._append(keep_seconds)
            except OSError as error:
                self._end()
                message = "the cluster is not recorded: make room, or correct `state`"
                about = {"folder": str(self._folder), "error": str(error)}
                self._states.failed("record", message, level=logging.WARNING, **about)

    def close(self) -> None:
        """End the recording."""
        with self._writing:
            self._end()

    def _end(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            log.close()

    def _append(self, keep_seconds: float) -> None:
        """Append the current changes. While nodes or pods are unknown, nothing is recorded, and readers see a gap."""
        state, now = self._cluster(), self._clock.wall()
        if isinstance(state.nodes, Unknown) or isinstance(state.pods, Unknown):
            return
        # When the API server last confirmed the nodes and the pods: if one or both of the watches hang, this must not
        # look like a cluster at rest.
        times = (state.nodes.time, state.pods.time)
        time, confirmed = min(now, max(times)), min(now, *times)
        if self._log is None:
            self._log = EventLog(self._folder, keep_seconds)
        first: tuple[bytes, ...] = ()
        if self._log.is_due(time):
            self._log.begin(time)
            self._changes = Changes()
            first = (self._changes.first_line(time),)
        lines = self._changes.lines(state.nodes.value, state.pods.value, time, confirmed)
        self._log.append(chain(first, (line for part in self._pace.timed(lines) for line in part)))
        self._states.recovered("record", "the cluster is recorded again")
