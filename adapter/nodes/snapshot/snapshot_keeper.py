"""Keeps the snapshot of all nodes: each refresh, and each change of pods or nodes, replaces it by a new one.

Refreshes and changes come from different tasks, so a lock orders them. Readers take the published value without
waiting.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.placed_pods import PlacedPods
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import UNPACED, Pace
from adapter.nodes.hotspots.crowded_workloads import crowded_replicas
from adapter.nodes.hotspots.exposition import hot_text
from adapter.nodes.hotspots.hot_nodes import HeatState, advance
from adapter.nodes.hotspots.over_limits import hot_nodes
from adapter.nodes.model.nodes_snapshot import NodesSnapshot, basis_at_start
from adapter.nodes.model.scheduling_settings import SchedulingSettings, TargetLoadPackingArgs, predicts
from adapter.nodes.placement.node_columns import ColumnsBuilder, requested_ratio
from adapter.nodes.placement.pending_pod import OwnerSelectors
from adapter.nodes.placement.pod_times import last_changed_at
from adapter.nodes.queries.refresh_results import RefreshResult
from adapter.nodes.scores.loads.target_load_packing import predicted_cpu_milli
from adapter.nodes.snapshot.cluster_facts import NodeFacts, node_topology
from adapter.nodes.snapshot.day_and_week_keeper import PastKeeper
from adapter.nodes.snapshot.day_keeper import DayKeeper
from adapter.nodes.snapshot.machine_identity import Machines
from adapter.nodes.snapshot.refresh_logs import RefreshReports
from adapter.nodes.snapshot.week_keeper import WeekKeeper
from adapter.nodes.watcher.exposition import NodeExposition, prepare_exposition
from adapter.nodes.watcher.prepared import PreparedWatcher, prepare_watcher
from adapter.nodes.windows.estimates import BadSince, with_estimates
from adapter.nodes.windows.load_snapshot import RefreshFacts, assemble, node_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.nodes.model.columns import NodeColumns
    from adapter.nodes.model.loads import LoadResource, LoadSnapshot
    from adapter.nodes.model.samples import SampleSet
    from adapter.nodes.queries.refresher import SampleRefresher
    from adapter.nodes.snapshot.snapshot_telemetry import SnapshotMetrics
    from adapter.nodes.state_file.state_file import SampleFile, WeekFile


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """Everything from which requests are answered; replaced as a whole."""

    snapshot: NodesSnapshot
    selectors: OwnerSelectors
    heat: HeatState = field(default_factory=HeatState)
    watcher: PreparedWatcher | None = None
    exposition: NodeExposition | None = None
    hot: bytes = b""
    """The content of `/hotspots` in Prometheus's text format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperServices:
    """The parts of the keeper."""

    facts: Callable[[], NodeFacts]
    refresher: Callable[[SchedulingSettings], SampleRefresher]
    """Makes a refresher for a configuration."""
    file: Callable[[SchedulingSettings], SampleFile | None]
    """Makes the state file for a configuration; a file whose samples come from other queries is not used."""
    day_file: Callable[[SchedulingSettings], SampleFile | None]
    """Makes the file of the last day for a configuration."""
    week_file: Callable[[SchedulingSettings], WeekFile | None]
    """Makes the file of the last week for a configuration."""
    metrics: SnapshotMetrics
    refresh_seconds: float
    node_metrics: tuple[LoadResource, ...]
    """Resources whose windows are shown as metrics."""
    clock: Clock = field(default_factory=Clock)
    pace: Pace = UNPACED


class SnapshotKeeper:
    """Assembles and swaps the published value. `refresh`, `rebuild` and `use` may be called from different tasks."""

    def __init__(self, parts: KeeperServices, settings: SchedulingSettings) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._reports = RefreshReports()
        self._settings = settings
        self._builder = _builder(settings)
        self._refresher = parts.refresher(settings)
        self._file = parts.file(settings)
        self._past = self._new_past(settings)
        self._samples: SampleSet | None = None
        self._machines = Machines()
        self._bad_since = BadSince()
        self._basis = basis_at_start(parts.clock.monotonic())
        self._selectors = OwnerSelectors()
        self._selected: object = ()
        self._generation = 0
        """How often the queries have changed; answers to earlier queries are dropped."""
        columns = self._builder.build((), PlacedPods(), None, parts.clock.wall())
        self._published = Published(NodesSnapshot(columns, None, "none"), self._selectors)
        self.has_tried = False
        """Whether a refresh has been tried."""

    @property
    def published(self) -> Published:
        """Everything from which requests are answered now."""
        return self._published

    def read_file(self) -> None:
        """Publish the content of the state file."""
        self._past.read_files()
        samples = None if self._file is None else self._file.read()
        if samples is None:
            return
        # Node objects are listed after this, and the first refresh compares them.
        self._machines = Machines.of_file(samples)
        self._samples = samples = self._machines.select_current(RefreshResult(samples)).samples
        refreshed = RefreshFacts(self._parts.clock.wall(), self._parts.refresh_seconds)
        self._publish(samples, self._parts.facts(), refreshed, self._generation)

    def refresh(self) -> None:
        """Ask Prometheus for the newest samples, and publish the result."""
        try:
            self._refresh()
        finally:
            self.has_tried = True

    def rebuild(self) -> None:
        """Follow a change of pods or nodes: rebuild the columns, and keep the loads of the last refresh."""
        with self._lock:
            facts, loads = self._parts.facts(), self._published.snapshot.loads
            self._published = replace(
                self._published, snapshot=self._snapshot(facts, loads), selectors=self._selectors_of(facts)
            )

    def use(self, settings: SchedulingSettings) -> None:
        """Follow a changed configuration. Samples of other queries are dropped."""
        with self._lock:
            before, self._settings = self._settings, settings
            self._builder = _builder(settings)
            if (before.queries, before.matchers, before.match) != (settings.queries, settings.matchers, settings.match):
                self._refresher, self._file = self._parts.refresher(settings), self._parts.file(settings)
                self._samples, self._bad_since, self._past = None, BadSince(), self._new_past(settings)
                self._generation += 1
        self.rebuild()

    def write_file(self) -> None:
        """Write the samples and the past to their files if that is due. A periodic task calls this function."""
        if self._file is not None:
            self._file.write_if_due()
        self._past.write_files()

    def _new_past(self, settings: SchedulingSettings) -> PastKeeper:
        parts = self._parts
        day = DayKeeper(parts.day_file(settings), parts.clock.wall)
        week = WeekKeeper(parts.week_file(settings), parts.clock, parts.pace)
        return PastKeeper(day, week, parts.refresh_seconds)

    def _refresh(self) -> None:
        facts = self._parts.facts()
        self._reports.names(facts.why_unknown if facts.nodes is None else None)
        with self._lock:
            refresher, file, samples, generation = self._refresher, self._file, self._samples, self._generation
            past, needs_week = self._past, predicts(self._settings.policies)
        now = self._parts.clock.wall()
        machines = self._machines.after(facts.nodes, now)
        # Prometheus is asked without the lock, so that changes of pods need not wait for it.
        result = machines.select_current(refresher.refresh(now, samples, facts.nodes, kept_queries=past.kept_queries))
        self._machines = machines
        with self._lock:
            if generation != self._generation:
                return
            self._samples = result.samples
        past.add_refresh(result, machines)
        failures = self._reports.failures(result)
        refreshed = RefreshFacts(
            self._parts.clock.wall(),
            self._parts.refresh_seconds,
            unmapped=result.unmapped,
            measured_by=result.measured_by,
            moved=result.moved,
            query_failures=failures,
        )
        self._publish(result.samples, facts, refreshed, generation)
        with self._lock:
            problems = (*facts.problems, *self._builder.problems)
        self._reports.objects(problems)
        self._parts.metrics.set_refresh(result)
        self._reports.log_unmapped([one for one in result.unmapped if not one.refused_for])
        self._reports.exporters(result)
        self._reports.basis(self._published.snapshot.basis)
        if file is not None and result.samples.grids and not result.samples.from_file:
            file.offer(machines.with_records(result.samples))
        # This comes after everything that a reader waits for.
        past.fill(refresher, result, machines, needs_week=needs_week, is_answered=result.is_answered)

    def _publish(self, samples: SampleSet, asked_with: NodeFacts, refresh: RefreshFacts, generation: int) -> None:
        """Assemble everything from the samples, and publish it as a whole, unless the queries have changed since.

        `asked_with` are the facts that were known when Prometheus was asked. Pods that have been bound since then count
        too.
        """
        with self._lock:
            if generation != self._generation:
                return
            settings = self._settings
            facts = self._current_facts(asked_with)
            loads = self._with_estimates(facts, self._assemble_snapshot(samples, facts, refresh), refresh.moved)
            # Estimates replace samples of minutes; measurements over a day stay as they are.
            loads = self._past.added_to(loads)
        # Writing about thousands of nodes takes seconds, in slices: it must not delay changes of pods.
        places = node_topology(facts.nodes, settings.pool_label)
        pace = self._parts.pace
        before = self._published.watcher
        watcher = prepare_watcher(loads, places, before, estimates=settings.watcher_estimates, pace=pace)
        exposition = prepare_exposition(loads, self._parts.node_metrics, pace=pace)
        with self._lock:
            if generation != self._generation:
                return
            facts, hotspots = self._current_facts(asked_with), self._settings.hotspots
            are_requests_known = facts.nodes is not None and facts.pods is not None
            now = self._parts.clock.monotonic()
            self._basis = self._basis.after(loads, now, are_requests_known=are_requests_known)
            self._parts.metrics.set_basis(self._basis.basis)
            snapshot, heat = self._snapshot(facts, loads), advance(self._published.heat, loads, hotspots, refresh.moved)
            names = [node.name for node in hot_nodes(snapshot, heat, hotspots)]
            hot = hot_text(names, crowded_replicas(snapshot, names))
            self._published = Published(snapshot, self._selectors_of(facts), heat, watcher, exposition, hot)

    def _current_facts(self, asked_with: NodeFacts) -> NodeFacts:
        """Return the current facts, or `asked_with` if Node objects have just become known or unknown.

        In that case, the samples have other node names until the next refresh.
        """
        facts = self._parts.facts()
        return facts if (facts.nodes is None) == (asked_with.nodes is None) else asked_with

    def _assemble_snapshot(self, samples: SampleSet, facts: NodeFacts, refresh: RefreshFacts) -> LoadSnapshot:
        nodes = node_names(samples) if facts.nodes is None else tuple(node.name for node in facts.nodes)
        changed = None if facts.pods is None else last_changed_at(nodes, facts.pods)
        return assemble(samples, nodes, replace(refresh, pod_changed_at=changed))

    def _with_estimates(self, facts: NodeFacts, snapshot: LoadSnapshot, moved: frozenset[str]) -> LoadSnapshot:
        """Return the snapshot with estimates for nodes that have been bad for long enough."""
        columns = self._columns(facts, snapshot)
        requested = {} if facts.pods is None else requested_ratio(columns, self._settings.gpu.resources)
        self._bad_since = self._bad_since.after_refresh(snapshot, requested, moved)
        return with_estimates(snapshot, self._bad_since, requested)

    def _snapshot(self, facts: NodeFacts, loads: LoadSnapshot | None) -> NodesSnapshot:
        pods = facts.pods or PlacedPods()
        return NodesSnapshot(
            self._columns(facts, loads),
            loads,
            self._basis.basis,
            facts.nodes or (),
            pods.by_node,
            pods.by_namespace,
            self._selectors_of(facts).daemon_sets,
            are_nodes_known=facts.nodes is not None,
            are_pods_known=facts.pods is not None,
        )

    def _columns(self, facts: NodeFacts, loads: LoadSnapshot | None) -> NodeColumns:
        return self._builder.build(facts.nodes or (), facts.pods or PlacedPods(), loads, self._parts.clock.wall())

    def _selectors_of(self, facts: NodeFacts) -> OwnerSelectors:
        if facts.selectors != self._selected:
            self._selected, self._selectors = facts.selectors, OwnerSelectors(facts.selectors)
        return self._selectors


def _builder(settings: SchedulingSettings) -> ColumnsBuilder:
    # If both policies are listed, they predict the same: the configuration is refused otherwise.
    listed = (policy.args for policy in settings.policies if isinstance(policy.args, TargetLoadPackingArgs))
    return ColumnsBuilder(settings, partial(predicted_cpu_milli, args=next(listed, TargetLoadPackingArgs())))
