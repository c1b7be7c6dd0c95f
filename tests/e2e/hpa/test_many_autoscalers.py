"""Two hundred HPAs: one query of Prometheus for many of them, and hardly a request to the API server.

An adapter that lists pods and queries Prometheus for each request is throttled here: its client may send five LISTs a
second. Only counts are asserted; `python -m benchmarks.control_plane` measures the speed.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import pytest

from benchmarks.control_plane_audit import asked_by_adapter, asked_by_hpas
from benchmarks.control_plane_fleet import RULE, App, deployed, fleet, told
from benchmarks.control_plane_stage import PATIENCE_SECONDS, Stage, installed
from tests.support.questions import answers_by_question

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.support.prometheus import ScrapedPrometheus

AUTOSCALERS: Final = 200
NAMESPACES: Final = 10
SYNCS: Final = 2
"""The number of syncs of each HPA that are counted."""
SYNC_SECONDS: Final = 8.0
"""About half of Kubernetes's default: the counts do not depend on it, and each HPA waits for a few syncs."""
HOUSEKEEPING_SECONDS: Final = 10.0
"""The shortest time between two looks of a replica at its own objects."""


@contextmanager
def synced_each(cluster: Cluster, seconds: float) -> Iterator[None]:
    """Let the HPA controller of a shared cluster sync each HPA at this interval."""
    plane, before = cluster.plane, cluster.plane.options
    try:
        plane.stop_process("kube-controller-manager")
        plane.options = replace(before, hpa_sync_seconds=seconds)
        plane.start_controllers()
        yield
    finally:
        plane.stop_process("kube-controller-manager")
        plane.options = before
        plane.start_controllers()


@pytest.mark.needs_pods
@pytest.mark.timeout(480)  # four bounded waits
def test_200_autoscalers_cost_no_list_few_reviews_and_queries_by_the_clock(
    cluster: Cluster, pod_metrics: PodMetrics, prometheus: ScrapedPrometheus
) -> None:
    stage = Stage(cluster, pod_metrics, prometheus)
    apps = fleet(AUTOSCALERS, NAMESPACES, f"many-{os.urandom(3).hex()}")
    with (
        synced_each(cluster, SYNC_SECONDS),
        installed(stage, RULE) as adapter,
        deployed(stage, apps),
    ):

        def wrong() -> list[tuple[App, str | None]]:
            return [(app, value) for app, value in told(stage, apps).items() if value != str(app.value)]

        cluster.wait_for("the right value in every HPA", lambda: not wrong(), PATIENCE_SECONDS, why_not=wrong)
        since, began, queries = datetime.now(UTC), time.monotonic(), stage.asked()["/api/v1/query"]

        def all_came() -> bool:
            counts = answers_by_question(cluster.audit_events(), since, datetime.now(UTC))
            return all(counts[app.question] >= SYNCS for app in apps)

        cluster.wait_for(f"{SYNCS} good answers for each HPA", all_came, PATIENCE_SECONDS)
        until, seconds = datetime.now(UTC), time.monotonic() - began
        queries = stage.asked()["/api/v1/query"] - queries
        events = cluster.audit_events()
        asked = asked_by_hpas(events, since, until)
        assert set(answers_by_question(events, since, until)) == {app.question for app in apps}
        assert asked.codes == {200: asked.requests}
        before = asked_by_adapter(events, adapter.account, datetime.fromtimestamp(0, UTC), since)
        assert any("/pods" in uri for uri in before.lists), "not even the LISTs of the first sync are in the audit log"
        own = asked_by_adapter(events, adapter.account, since, until)
        assert own.lists == ()
        # The HPA controller's right to the metric, once a namespace and replica.
        assert own.reviews <= NAMESPACES * len(adapter.pods)
        # By the clock each replica looks at its certificate's Secret and at the three APIServices.
        assert all(other.startswith("get ") for other in own.others), own.others
        assert len(own.others) <= len(adapter.pods) * 4 * (seconds / HOUSEKEEPING_SECONDS + 1)
        # One metric, asked for by each replica once a second at the most, however many HPAs there are, and the time,
        # once a minute.
        assert 0 < queries <= len(adapter.pods) * (seconds + 1 + seconds / 60 + 1)
        assert wrong() == []
