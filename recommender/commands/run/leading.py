"""Leader election, and how it ends when the process ends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from recommender.leader_election.elector import LeaseElector
from recommender.leader_election.lease_rules import LeaseTiming
from recommender.outputs.write_attempt import LONGEST_EFFECT_RATIO, longest_fenced_write_seconds

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from adapter.foundation.service.runtime.tasks import Tasks
    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from recommender.leader_election.lease_events import LeaseMetrics
    from recommender.leader_election.lease_settings import LeaseSettings
    from recommender.running.effects.writes_at_shutdown import Writes

_log = logging.getLogger(__name__)

RELEASE_SECONDS = 1.5
TIMING = LeaseTiming()


class ElectionHost(Protocol):
    """The process in which an election runs (`WorkerContext`)."""

    @property
    def tasks(self) -> Tasks:
        """The tasks of the process."""

    def on_stopping(self, callback: Callable[[], None]) -> None:
        """Register a callback for the start of the shutdown."""


def begin_election(
    settings: LeaseSettings,
    host: ElectionHost,
    objects: ObjectClient,
    writes: Writes,
    metrics: LeaseMetrics,
) -> LeaseElector:
    """Start the election, and arrange that it ends with the process."""
    elector = LeaseElector(objects, settings, metrics)

    def run(stop: threading.Event) -> None:
        elector.run(stop)
        # After a release, the process may serve for a while. A task that ended then would count as failed.
        stop.wait()

    host.tasks.running("leader election", run)
    host.on_stopping(lambda: release_after_writes(writes, elector.release))
    return elector


def release_after_writes(writes: Writes, release: Callable[[float], object]) -> None:
    """Release the Lease once no write can still take effect; if that is uncertain, let it expire by itself."""
    if writes.close(LONGEST_EFFECT_RATIO * longest_fenced_write_seconds(TIMING)):
        release(RELEASE_SECONDS)
    else:
        _log.warning(
            "the Lease is not released: a write is still in progress, so the next leader waits until the Lease expires"
        )
