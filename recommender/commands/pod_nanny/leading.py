"""Leader election with addon-resizer's Lease, so that only one of the two programs leads during a migration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.errors import UsageError
from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
from recommender.commands.program import METRICS_PREFIX
from recommender.leader_election.elector import LeaseElector
from recommender.leader_election.lease_events import LeaseMetrics
from recommender.leader_election.lease_settings import LeaseSettings, unique_identity
from recommender.outputs.write_attempt import LONGEST_EFFECT_RATIO, longest_fenced_write_seconds

if TYPE_CHECKING:
    from recommender.commands.one_process.process import OneProcess
    from recommender.leader_election.lease_rules import LeaseTiming

LEASE: Final = "addon-resizer"
_LEAST_WRITE_SECONDS: Final = 0.5
"""Time that a patch may need, with a new connection to the API server."""


def fence_of_leader(process: OneProcess, objects: ObjectClient, namespace: str, timing: LeaseTiming, pod: str) -> Fence:
    """Start the election, and return the fence under which only the leader may write. Raises UsageError.

    The Lease is not released when the process ends, since a write may then be under way; it expires by itself.
    """
    seconds = write_seconds(timing)
    settings = LeaseSettings(namespace=namespace, name=LEASE, identity=unique_identity(pod), timing=timing)
    elector = LeaseElector(objects, settings, LeaseMetrics(process.registry, METRICS_PREFIX))
    process.tasks.running("leader election", elector.run)
    return Fence(seconds, elector.may_write)


def write_seconds(timing: LeaseTiming) -> float:
    """Return the time limit of a patch; raises UsageError if the Lease leaves too little time for one."""
    seconds = longest_fenced_write_seconds(timing)
    if seconds >= _LEAST_WRITE_SECONDS:
        return seconds
    latest = timing.lease_seconds - timing.slack_seconds - LONGEST_EFFECT_RATIO * _LEAST_WRITE_SECONDS
    found = f"--leader-election-renew-deadline is {timing.renew_deadline_seconds:g}s"
    why = f"the rest of a Lease of {timing.lease_seconds}s is too short for a write"
    raise UsageError(f"{found}: {why}: write at most {latest:g}s, or a longer --leader-election-lease-duration")
