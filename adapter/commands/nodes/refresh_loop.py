"""Decides when `nodes` refreshes its samples, and when it rebuilds the snapshot in between."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.heap import return_free_memory

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from adapter.foundation.time.pace import Pace
    from adapter.nodes.snapshot.snapshot_keeper import SnapshotKeeper

PAUSE_SECONDS: Final = 0.001
"""The pause after each half millisecond of bulk work, once requests are served. With the 4 ms of `serve`, reading
Prometheus's answer about 5,000 nodes would take longer than a refresh may take.
"""
_SHARE_OF_REBUILDING: Final = 0.2
"""The largest share of one processor that may be spent on rebuilding after changes of pods. With a smaller one, many
pods would go to the same node: the scheduler places up to a hundred a second, by the scores of one snapshot.
"""
_STOP_NOTICED_SECONDS: Final = 0.5


class NodeRefreshLoop:
    """Publishes the samples of the state file, and then refreshes at intervals."""

    def __init__(
        self,
        keeper: SnapshotKeeper,
        interval_seconds: float,
        beginning: tuple[threading.Event, Callable[[], bool]],
        pace: Pace,
    ) -> None:
        """`beginning` is an event and a function.

        `run` sets the event once the state file has been read, and begins to refresh once the function returns True.
        """
        self._keeper = keeper
        self._pace = pace
        self._interval_seconds = interval_seconds
        self._file_is_read, self._lists_are_done = beginning

    def run(self, stop: threading.Event) -> None:
        """Read the state file, and then refresh until the stop is requested."""
        if not self._file_is_read.is_set():
            try:
                self._keeper.read_file()
            finally:
                # A task that fails is started again, and must not fail twice because of the file.
                self._file_is_read.set()
        while not self._lists_are_done() and not stop.wait(0.02):
            pass
        while not stop.is_set():
            began = time.monotonic()
            is_first = not self._keeper.has_tried
            self._keeper.refresh()
            if is_first:
                self._pace.set_pause(PAUSE_SECONDS)
                # The objects that exist now will stay, so the garbage collector need not scan them again.
                gc.collect()
                gc.freeze()
            return_free_memory()
            stop.wait(began + self._interval_seconds - time.monotonic())


def follow_changes(
    keeper: SnapshotKeeper,
    wake: threading.Event,
    stop: threading.Event,
    processor_time: Callable[[], float] = time.thread_time,
) -> None:
    """Rebuild the snapshot after changes: immediately after the first, then as often as does not delay requests.

    The processor time of this thread counts. While a refresh publishes the loads of thousands of nodes, a rebuild may
    wait for most of a second, and the one after it must not wait for several times as long.
    """
    while not stop.is_set():
        if not wake.wait(_STOP_NOTICED_SECONDS):
            continue
        wake.clear()
        began = processor_time()
        keeper.rebuild()
        took = processor_time() - began
        stop.wait(took / _SHARE_OF_REBUILDING - took)
