"""A keeper of the snapshot whose Prometheus, cluster and clock are set by a test."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from prometheus_client import CollectorRegistry

from adapter.foundation.cluster.values.placed_pods import pods_by_place
from adapter.foundation.time.clock import Clock
from adapter.nodes.model.loads import AVG, LoadResource
from adapter.nodes.model.samples import SampleSet
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.model.week import QUARTER_SECONDS
from adapter.nodes.queries.past_queries import PastAnswer
from adapter.nodes.queries.refresh_results import RefreshResult
from adapter.nodes.snapshot.cluster_facts import NodeFacts
from adapter.nodes.snapshot.snapshot_keeper import KeeperServices, SnapshotKeeper
from adapter.nodes.snapshot.snapshot_telemetry import SnapshotMetrics
from adapter.nodes.windows.grid import align_to_step, kept_columns
from adapter.nodes.windows.week import known_quarters
from tests.adapter.nodes.placement.objects import a_node
from tests.support.sample_grids import END, STEP, grid_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.nodes.model.samples import SampleGrid
    from adapter.nodes.model.week import LoadWeek
    from adapter.nodes.queries.refresher import SampleRefresher
    from adapter.nodes.state_file.state_file import SampleFile

CPU = LoadResource.CPU
NODES = (a_node("a", {"topology.kubernetes.io/zone": "east"}), a_node("b"))
COLUMNS = kept_columns(STEP)


def steady(*loads: float, end: int = END, nodes: tuple[str, ...] = ("a", "b"), from_file: bool = False) -> SampleSet:
    """Return samples of CPU up to the end, the same at each step."""
    rows = np.repeat(np.array(loads)[:, None], COLUMNS, axis=1)
    grid = grid_of(rows, nodes=nodes, end=end)
    return SampleSet({CPU: grid}, from_file)


class Script:
    """Prometheus, the file, the cluster and the clock, as a test sets them."""

    def __init__(self) -> None:
        self.now = float(END)
        self.result = RefreshResult(steady(0.2, 0.4))
        self.facts = NodeFacts(NODES, pods=pods_by_place([]))
        self.file: SampleSet | None = None
        self.offered: list[SampleSet] = []
        self.made: list[SchedulingSettings] = []
        self.refreshed_with: list[SampleSet | None] = []
        self.needed: list[bool] = []
        self.past: SampleGrid | None = None
        """The samples of the week that Prometheus has, which end now."""
        self.fails: Exception | None = None
        self.meanwhile: Callable[[], None] = lambda: None
        self.when_time_is_read: Callable[[], None] = lambda: None

    def refresh(self, _now: float, samples: SampleSet | None, _nodes: object, *, kept_queries: int) -> RefreshResult:
        assert kept_queries in {0, 1}
        self.refreshed_with.append(samples)
        self.meanwhile()
        if self.fails:
            raise self.fails
        return self.result

    def wall(self) -> float:
        run, self.when_time_is_read = self.when_time_is_read, lambda: None
        run()
        return self.now

    def fill_day(self, *_of: object) -> PastAnswer:
        return PastAnswer()

    def fill_week(self, now: float, week: LoadWeek, _nodes: object, _seconds: float, *, is_needed: bool) -> PastAnswer:
        self.needed.append(is_needed)
        if self.past is None or known_quarters(week):
            return PastAnswer()
        return PastAnswer((replace(self.past, end=align_to_step(now, QUARTER_SECONDS)),), 1)

    def read(self) -> SampleSet | None:
        return self.file

    def offer(self, samples: SampleSet) -> None:
        self.offered.append(samples)

    def keeper(self, settings: SchedulingSettings | None = None) -> SnapshotKeeper:
        def refresher(scheduling: SchedulingSettings) -> SampleRefresher:
            self.made.append(scheduling)
            return cast("SampleRefresher", self)

        self.registry = CollectorRegistry()
        parts = KeeperServices(
            facts=lambda: self.facts,
            refresher=refresher,
            file=lambda _: cast("SampleFile", self),
            day_file=lambda _: None,
            week_file=lambda _: None,
            metrics=SnapshotMetrics(self.registry, "p"),
            refresh_seconds=30.0,
            node_metrics=(CPU,),
            clock=Clock(lambda: self.now, self.wall),
        )
        return SnapshotKeeper(parts, settings or SchedulingSettings())

    def basis_shown(self) -> list[str]:
        return [
            basis
            for basis in ("metrics", "none", "requests")
            if self.registry.get_sample_value("p_extender_basis", {"basis": basis})
        ]


def averages(keeper: SnapshotKeeper) -> dict[str, float]:
    loads = keeper.published.snapshot.loads
    assert loads is not None
    return dict(zip(loads.nodes, loads.resources[CPU].stats[0, AVG].tolist(), strict=True))
