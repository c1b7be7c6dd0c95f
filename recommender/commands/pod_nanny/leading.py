"""Leader election with addon-resizer's Lease, so that only one of the two programs leads during a migration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
from recommender.commands.program import METRICS_PREFIX
from recommender.leader_election.elector import LeaseElector
from recommender.leader_election.lease_events import LeaseMetrics
from recommender.leader_election.lease_settings import LeaseSettings, unique_identity
from recommender.outputs.write_attempt import longest_fenced_write_seconds

if TYPE_CHECKING:
    from recommender.commands.one_process.process import OneProcess
    from recommender.leader_election.lease_rules import LeaseTiming

LEASE: Final = "addon-resizer"


def fence_of_leader(process: OneProcess, objects: ObjectClient, namespace: str, timing: LeaseTiming, pod: str) -> Fence:
    """Start the election, and return the fence under which only the leader may write.

    The Lease is not released when the process ends, since a write may then be under way; it expires by itself.
    """
    settings = LeaseSettings(namespace=namespace, name=LEASE, identity=unique_identity(pod), timing=timing)
    elector = LeaseElector(objects, settings, LeaseMetrics(process.registry, METRICS_PREFIX))
    process.tasks.running("leader election", elector.run)
    return Fence(longest_fenced_write_seconds(timing), elector.may_write)
