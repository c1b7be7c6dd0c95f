"""Doctor: reports which process holds the Lease."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.options.cluster_checks import unread
from adapter.foundation.reports.lines import Line, error, ok, unknown, warning
from adapter.foundation.sources.kubernetes.errors import KubernetesError, NotFoundError
from recommender.leader_election.lease_rules import record_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from recommender.configuration.recommender_configuration import LeaderElection

_LINE: Final = "leader"
_START: Final = "check whether the recommender's pods run, and what their logs say about leader election"


def look_at_leader(client: ObjectClient, election: LeaderElection, namespace: str, now: float) -> tuple[Line]:
    """Read the Lease, and judge it."""
    if not election.enabled:
        return (ok(_LINE, "leaderElection is disabled: exactly one process may run"),)
    where = f"{namespace}/{election.name}"
    try:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{election.name}"
        return (judge_lease(where, client.get(path).document, now),)
    except NotFoundError:
        return (error(_LINE, f"the Lease {where} does not exist, so no process has ever led", _START),)
    except KubernetesError as e:
        return (unread(_LINE, e, f"get on the Lease {where}"),)


def judge_lease(where: str, document: Mapping[str, Any], now: float) -> Line:
    """Return the line about a Lease. Raises KubernetesError for an invalid Lease."""
    record = record_of(document)
    if not record.holder:
        return error(_LINE, f"nobody holds the Lease {where}", _START)
    try:
        age = now - datetime.fromisoformat(record.renew_time).timestamp()
    except ValueError:
        return unknown(_LINE, f"{record.holder} holds the Lease {where}, which has no valid renewTime", _START)
    if age > record.lease_seconds:
        return error(_LINE, f"{record.holder} renewed the Lease {where} last {age:.0f} s ago: it has ended", _START)
    if age < -record.lease_seconds:
        fix = "synchronize the clocks with NTP"
        return warning(_LINE, f"{record.holder} renewed the Lease {where} {-age:.0f} s in the future", fix)
    return ok(_LINE, f"{record.holder} leads, and renewed the Lease {where} {max(0.0, age):.0f} s ago")
