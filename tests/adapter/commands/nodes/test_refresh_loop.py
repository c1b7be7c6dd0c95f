"""When the snapshot follows changes of pods and nodes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

import pytest

from adapter.commands.nodes.refresh_loop import follow_changes

if TYPE_CHECKING:
    from adapter.nodes.snapshot.snapshot_keeper import SnapshotKeeper


class Storm(threading.Event):
    """A keeper whose rebuilds take a time, with another change during each; as the stop, it notes how long it waits."""

    def __init__(self, takes: float, rebuilds: int) -> None:
        super().__init__()
        self.wake, self.now, self.waits = threading.Event(), 0.0, list[float]()
        self._takes, self._rebuilds = takes, rebuilds
        self.wake.set()

    def rebuild(self) -> None:
        self.now += self._takes
        self.wake.set()

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0.0)
        if len(self.waits) == self._rebuilds:
            self.set()
        return self.is_set()


@pytest.mark.parametrize(("takes", "waits"), [(0.002, 0.008), (0.01, 0.04), (0.2, 0.8)])
def test_scores_follow_bindings_as_soon_as_a_fifth_of_the_time_allows(takes: float, waits: float) -> None:
    """All pods that are placed between two snapshots go to the node that was the best in the first one."""
    storm = Storm(takes, rebuilds=3)
    follow_changes(cast("SnapshotKeeper", storm), storm.wake, storm, lambda: storm.now)
    assert storm.waits == pytest.approx([waits] * 3)
