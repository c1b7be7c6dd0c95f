"""From the counters of four days in a real Prometheus to the scores of predicted-load-packing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from adapter.foundation.cluster.values.placed_pods import pods_by_place
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.clock import Clock
from adapter.nodes.model.columns import PendingPod
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import (
    PolicyName,
    PolicySettings,
    SchedulingSettings,
    TargetLoadPackingArgs,
)
from adapter.nodes.model.week import FORECAST_VERDICTS
from adapter.nodes.queries.refresher import SampleRefresher
from adapter.nodes.scores.table import score_nodes
from adapter.nodes.snapshot.cluster_facts import NodeFacts
from adapter.nodes.snapshot.snapshot_keeper import KeeperServices, SnapshotKeeper
from adapter.nodes.snapshot.snapshot_telemetry import SnapshotMetrics
from adapter.nodes.state_file.state_file import SAMPLES, WEEK, StateFile
from tests.adapter.nodes.placement.objects import a_node, resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from adapter.nodes.model.nodes_snapshot import NodesSnapshot
    from tests.support.prometheus import ScrapedPrometheus

AT = int(time.time()) // 900 * 900 - 900
DAYS = 4
NODES = (a_node("quiet-now"), a_node("steady"))
POLICIES = {
    name: PolicySettings(name, 1, TargetLoadPackingArgs())
    for name in (PolicyName.TARGET_LOAD_PACKING, PolicyName.PREDICTED_LOAD_PACKING)
}
SETTINGS = SchedulingSettings(policies=(POLICIES[PolicyName.PREDICTED_LOAD_PACKING],))


def busy_seconds(node: str, at: float) -> float:
    """Return how many seconds a node has been busy: at 5% throughout, or at 10% and for hours of each day at 80%."""
    if node == "steady":
        return 0.05 * (at - AT)
    days, rest = divmod(at - AT, 86_400.0)
    # The busy hours begin half an hour after the time at which nodes are scored.
    return 0.1 * (at - AT) + 0.7 * (8 * 3600 * days + min(max(rest - 1800.0, 0.0), 8 * 3600.0))


def history() -> str:
    """Return the scraped samples: every four minutes long ago, and every 15 seconds in the last twenty minutes."""
    times = [*range(AT - DAYS * 86_400, AT - 1200, 240), *range(AT - 1200, AT + 1, 15)]
    lines = ["# TYPE node_cpu_seconds counter"]
    for node in ("quiet-now", "steady"):
        for mode in ("user", "idle"):
            for at in times:
                busy = busy_seconds(node, at)
                value = 1e6 + (busy if mode == "user" else at - AT - busy)
                labels = f'instance="{node}:9100",job="node-exporter",cpu="0",mode="{mode}"'
                lines.append(f"node_cpu_seconds_total{{{labels}}} {value:.3f} {at}")
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module", name="client")
def _client(start_prometheus: Callable[..., ScrapedPrometheus]) -> Iterator[PrometheusClient]:
    prometheus = start_prometheus(history=history())
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        yield client


def keeper_of(client: PrometheusClient, folder: Path) -> SnapshotKeeper:
    # Backtests take no time by this clock, so that none waits for another refresh.
    clock = Clock(monotonic=lambda: 0.0, wall=lambda: AT + 20.0)
    parts = KeeperServices(
        facts=lambda: NodeFacts(NODES, pods=pods_by_place([])),
        refresher=lambda settings: SampleRefresher(client, settings),
        file=lambda _: StateFile(folder / "state", "m", SAMPLES, clock),
        day_file=lambda _: StateFile(folder / "state.day", "m", SAMPLES, clock),
        week_file=lambda _: StateFile(folder / "state.week", "m", WEEK, clock),
        metrics=SnapshotMetrics(CollectorRegistry(), "p"),
        refresh_seconds=30.0,
        node_metrics=(LoadResource.CPU,),
        clock=clock,
    )
    return SnapshotKeeper(parts, SETTINGS)


def verdicts(snapshot: NodesSnapshot) -> list[str]:
    forecast = snapshot.columns.forecast
    return [] if forecast is None else [FORECAST_VERDICTS[verdict] for verdict in forecast.verdicts.tolist()]


def best(snapshot: NodesSnapshot, policy: PolicyName) -> str:
    pod = PendingPod(resources=resources("100m"))
    scores = score_nodes(POLICIES[policy], pod, snapshot, np.arange(len(NODES)))
    return snapshot.columns.names[int(np.argmax(scores.values))]


def test_a_node_that_stays_quiet_beats_one_that_is_only_quiet_now_also_after_a_restart(
    client: PrometheusClient, tmp_path: Path
) -> None:
    keeper = keeper_of(client, tmp_path)
    # The newest samples, the day and the week.
    for _ in range(6):
        keeper.refresh()
    snapshot = keeper.published.snapshot
    assert verdicts(snapshot) == ["predicted", "not_better"]
    assert snapshot.columns.forecast is not None
    assert snapshot.columns.forecast.ratio[0] == pytest.approx(0.8, abs=0.03)
    assert snapshot.columns.mean_ratio[LoadResource.CPU] == pytest.approx([0.1, 0.05], abs=0.01)
    assert best(snapshot, PolicyName.TARGET_LOAD_PACKING) == "quiet-now"
    assert best(snapshot, PolicyName.PREDICTED_LOAD_PACKING) == "steady"
    keeper.write_file()
    restarted = keeper_of(client, tmp_path)
    restarted.read_file()
    assert verdicts(restarted.published.snapshot) == ["short_history"] * 2
    # The first refresh publishes before anything of the past is queried.
    restarted.refresh()
    assert verdicts(restarted.published.snapshot) == ["predicted", "not_better"]
    assert best(restarted.published.snapshot, PolicyName.PREDICTED_LOAD_PACKING) == "steady"
