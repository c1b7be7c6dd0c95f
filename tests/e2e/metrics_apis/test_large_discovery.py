"""Five thousand metrics: the API server's discovery stays complete, and as small as before.

`python -m benchmarks.control_plane` measures how long it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from benchmarks.control_plane_discovery import (
    CUSTOM_METRICS,
    RULE,
    SERIES,
    aggregated,
    exported,
    freshness,
    listed,
    wait_for_lists,
)
from benchmarks.control_plane_stage import LISTS, PATIENCE_SECONDS, Stage, installed
from tests.e2e.controlplane.extension import GROUP

if TYPE_CHECKING:
    from tests.e2e.controlplane.client import Reply
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.support.prometheus import ScrapedPrometheus

METRICS: Final = 5_000
OURS: Final = {*(path.removeprefix("/apis/") for path in LISTS), "external.metrics.k8s.io/v1beta1"}
A_GROUP_VERSION_TAKES: Final = 1_000
"""The most bytes of the document for a group version; an entry for each metric would take hundreds of times as much."""


@pytest.mark.needs_pods
@pytest.mark.timeout(600)  # six bounded waits
def test_with_5000_metrics_no_group_version_is_stale_and_clients_read_no_more_than_before(
    cluster: Cluster, pod_metrics: PodMetrics, prometheus: ScrapedPrometheus
) -> None:
    stage = Stage(cluster, pod_metrics, prometheus)
    # Discovery may still list the extension of a test that has just ended.
    before = cluster.wait_for("the lists without an extension", lambda: resources_without(cluster, GROUP))
    size_before = len(aggregated(cluster).body)
    with exported(stage, METRICS), installed(stage, RULE):
        wait_for_lists(cluster, METRICS)
        # What it answers from now on it has read while all metrics were there; otherwise it reads once a minute.
        cluster.restart_api_server()
        reply = cluster.wait_for(
            "discovery", lambda: read_anew(cluster), PATIENCE_SECONDS, why_not=lambda: told(cluster)
        )
        assert len(reply.body) - size_before < len(OURS) * A_GROUP_VERSION_TAKES
        (group,) = [one for one in reply.document["items"] if one["metadata"].get("name") == CUSTOM_METRICS]
        assert [one["version"] for one in group["versions"]] == ["v1beta2", "v1beta1"]
        assert sorted(cluster.kubectl("api-resources").splitlines()) == sorted(before.splitlines())
        names = {f"{SERIES}_{number:06d}" for number in range(METRICS // 2)}
        expected = {f"{resource}/{name}" for resource in ("pods", "namespaces") for name in names}
        assert [listed(cluster, path) for path in LISTS] == [expected, expected]


def resources_without(cluster: Cluster, group: str) -> str | None:
    """Return what kubectl lists; None while the list has the group."""
    found = cluster.kubectl("api-resources")
    return None if group in found else found


def read_anew(cluster: Cluster) -> Reply | None:
    """Return the document once every group version is current, including the adapter's."""
    reply = aggregated(cluster)
    fresh = freshness(reply.document) if reply.status == 200 else {}
    return reply if set(fresh) >= OURS and set(fresh.values()) == {"Current"} else None


def told(cluster: Cluster) -> dict[str, str]:
    """Return what the document says about group versions that are not current, and about the adapter's."""
    found = freshness(aggregated(cluster).document)
    return {name: fresh for name, fresh in found.items() if fresh != "Current" or name in OURS}
