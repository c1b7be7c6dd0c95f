"""Puts the parts of `proportional` together: watches, the ConfigMap, the loop, scale calls and events.

The result corresponds to `run` with one recommendation of this kind, without the parts that only other kinds need.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import ClusterNeeds, Unknown
from adapter.foundation.cluster.values.virtual_nodes import VIRTUAL_LABELS
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.objects.selectors import parse_selector
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.runtime.threads import DaemonThreads
from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials.access import access
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchMetrics
from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
from adapter.foundation.time.clock import Clock
from recommender.commands.program import METRICS_PREFIX
from recommender.commands.proportional.decisions import OneDecision
from recommender.commands.proportional.poll_state import PollState
from recommender.commands.proportional.watches import ProportionalWatches
from recommender.decisions.record import Record, TargetAction, TargetOutcome
from recommender.kinds.proportional.calculate import calculate_proportional
from recommender.kinds.table import kind_of
from recommender.leader_election.lease_events import LeaseMetrics
from recommender.leader_election.lease_rules import LeaseTiming
from recommender.outputs.event_rules import event_of_scale_call
from recommender.outputs.events import EventWriter
from recommender.outputs.metrics import RecommendationMetrics
from recommender.outputs.output_telemetry import RecommenderTelemetry
from recommender.outputs.scale_writer import ScaleHooks, ScaleWriter
from recommender.outputs.write_attempt import ScaleOutcome, longest_fenced_write_seconds
from recommender.running.effects.leader_effects import ClusterEffects, HistoryAlone, KeepRecords
from recommender.running.effects.writes_at_shutdown import Writes
from recommender.running.inputs.input_gathering import Gatherer, InputSources, LookUps, LookUpThreads
from recommender.running.inputs.parameter_config_maps import ParameterConfigMaps
from recommender.running.inputs.poll_plan import PollPlan
from recommender.running.inputs.target_lookups import TargetLookups
from recommender.running.memory.memories import Memories
from recommender.running.memory.store_protocol import ProcessMemoryStore
from recommender.running.polls.leadership import Leadership, WithoutLease
from recommender.running.polls.runner import Effects, Latest, Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.foundation.options.cluster import ClusterSettings
    from recommender.commands.one_process.process import OneProcess
    from recommender.configuration.needs import AskedQuery
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.publication import Publication
    from recommender.kinds.proportional.parameters import ParametersConfigMap, ProportionalSettings

_log = logging.getLogger(__name__)


class TargetNotes:
    """Logs notes on targets, and logs them again only if they change. Not thread-safe."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def log_notes(self, records: Sequence[Record]) -> None:
        """Log the notes in the records of a poll, except refusals, which are logged with the decision.

        What is still looked up, as the HPAs are at the start, is no note yet.
        """
        outcomes = [outcome for record in records for outcome in record.targets]
        notes = {str(each.target): each.message for each in outcomes if _has_note(each)}
        for target, note in notes.items():
            if note and self._said.get(target) != note:
                _log.warning("%s: %s", target, note)
        self._said |= notes


def _has_note(outcome: TargetOutcome) -> bool:
    return not outcome.is_awaited and outcome.action is not TargetAction.REFUSED


_LOOK_UP_THREADS: Final = (2, 1)
"""Number of threads for targets, and for targets that were slow the last time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProportionalOptions:
    """The values of flags that are not part of the configuration."""

    cluster: ClusterSettings
    dry_run: bool
    most_failures: int
    """Consecutive polls that fail before the process ends; 0 if it never does."""
    pod: str
    """The beginning of this process's identity in the Lease."""


class _SharedObjects:
    """The objects that several parts share."""

    def __init__(self, options: ProportionalOptions, poll_seconds: float, process: OneProcess) -> None:
        """Create the objects. Raises UsageError if no usable cluster is named; no request is sent yet."""
        named = options.cluster
        try:
            connect = access(None if named.kubeconfig is None else str(named.kubeconfig), named.context)
            self.client = KubernetesClient(connect)
        except KubernetesError as error:
            raise UsageError(str(error)) from error
        self.process = process
        self.clock = Clock()
        self.wake = threading.Event()
        self.objects = ObjectClient(self.client)
        self.writes = Writes(self.objects)
        self.telemetry = RecommenderTelemetry(process.registry)
        self.state = PollState(options.most_failures, poll_seconds, process.fail)
        # The kinds of targets are known, so the API server need not be asked for its kinds.
        self.resolve = partial(find_resource, BUILT_IN)
        self.lookups = TargetLookups(self.objects, self.resolve, clock=self.clock, threads=_LOOK_UP_THREADS)


def start(
    options: ProportionalOptions,
    configuration: Configuration,
    process: OneProcess,
    keep: KeepRecords = lambda _now, _records: None,
) -> Callable[[], Publication]:
    """Start all parts, and return a function that returns the decisions in force. Raises UsageError.

    `keep` keeps the decisions of each poll for the page.
    """
    parts = _SharedObjects(options, configuration.poll_interval_seconds, process)
    [entry] = configuration.recommendations
    subject: ProportionalSettings = entry.subject
    config_map: ParametersConfigMap = subject.config_map  # type: ignore[assignment]  # the flags require it
    leadership = _leadership(options, configuration, parts)
    parts.telemetry.set_poll_interval(configuration.poll_interval_seconds)
    memories = Memories(ProcessMemoryStore())
    watches = _watches(subject, config_map, parts)
    config_maps = ParameterConfigMaps(
        parts.objects,
        lambda _namespace, _name: config_map.default_params,
        leadership.may_write,
        parts.clock,
        is_dry_run=options.dry_run,
    )
    metrics = RecommendationMetrics(leadership.is_leader, (kind_of("proportional"),))
    latest = Latest(metrics.publish)
    threads = LookUpThreads(DaemonThreads("ConfigMap", 1).submit, DaemonThreads("slow ConfigMap", 1).submit)
    gatherer = Gatherer(InputSources(watches.state, _no_query, config_maps.read, parts.lookups.look), threads, threads)
    decisions = OneDecision(memories, config_map, parts.state, parts.telemetry.observe_decision, parts.clock)
    writes_nothing = HistoryAlone(keep)
    runner = Runner(
        plan=_fixed_plan(configuration, config_map, calculate_proportional(subject)),
        gatherer=gatherer,
        decisions=decisions,
        leadership=leadership,
        memories=memories,
        effects=writes_nothing if options.dry_run else _effects(parts, leadership, keep, entry.policy.name),
        latest=latest,
        clock=parts.clock,
        wake=parts.wake,
        count_poll=parts.telemetry.record_poll,
        report_poll=partial(_note_poll, parts.state, TargetNotes()),
    )
    process.health.add_first_lists(watches.has_tried_lists)
    process.on_stopping(parts.wake.set)
    watches.start(process.tasks)
    process.tasks.running("recommendations", runner.run)
    process.serve(parts.state.answer, metrics.text)
    return lambda: latest.get().as_of(parts.clock.wall(), leads=leadership.is_leader())


def _watches(
    subject: ProportionalSettings, config_map: ParametersConfigMap, parts: _SharedObjects
) -> ProportionalWatches:
    labels = {*parse_selector(subject.node_filter.selector).keys, *(key for key, _ in VIRTUAL_LABELS)}
    metrics = WatchMetrics(parts.process.registry, METRICS_PREFIX)
    return ProportionalWatches(parts.client, config_map.namespace, labels, metrics, parts.wake.set)


def _leadership(options: ProportionalOptions, configuration: Configuration, parts: _SharedObjects) -> Leadership:
    election = configuration.leader_election
    metrics = LeaseMetrics(parts.process.registry, METRICS_PREFIX, parts.wake.set)
    leadership: Leadership = WithoutLease()
    if options.dry_run:
        _log.info("this is a dry run: nothing is written")
    elif election.enabled:
        from recommender.commands.run.leading import TIMING, begin_election  # noqa: PLC0415 - seldom needed
        from recommender.leader_election.lease_settings import LeaseSettings, unique_identity  # noqa: PLC0415 - likewise

        lease = LeaseSettings(
            namespace=election.namespace, name=election.name, identity=unique_identity(options.pod), timing=TIMING
        )
        leadership = begin_election(lease, parts.process, parts.objects, parts.writes, metrics)
    else:
        # As in the original program.
        _log.info("leader election is disabled, so this process acts whatever other processes do: run only one replica")
    metrics.show(leadership.is_leader)
    return leadership


def _effects(parts: _SharedObjects, leadership: Leadership, keep: KeepRecords, recommendation: str) -> Effects:
    """Start the writers of scale calls and of events."""
    fence = Fence(longest_fenced_write_seconds(LeaseTiming()), leadership.may_write)
    events = EventWriter(parts.writes, parts.lookups.uid, parts.telemetry.count_event, clock=parts.clock)

    def announce(outcome: ScaleOutcome) -> None:
        parts.state.record_scale_call(outcome)
        event = event_of_scale_call(outcome)
        if event is not None:
            events.add(event)

    hooks = ScaleHooks(before_write=lambda _: True, count=parts.telemetry.count_scale_call, on_result=announce)
    writer = ScaleWriter(parts.writes, parts.resolve, fence, hooks)
    parts.telemetry.add_scale_output(recommendation)
    tasks = parts.process.tasks
    tasks.running("events", events.run)
    tasks.running("scale calls", writer.run)
    # The last callback runs first: no write may begin once the Lease is being released.
    parts.process.on_stopping(writer.clear)
    return ClusterEffects(writer, events, keep)


def _fixed_plan(
    configuration: Configuration, config_map: ParametersConfigMap, calculate: Calculate
) -> Callable[[], PollPlan]:
    [policy] = [each.policy for each in configuration.recommendations]
    plan = PollPlan(
        configuration,
        ClusterNeeds(nodes=True, autoscaler_namespaces=frozenset({config_map.namespace})),
        LookUps(config_maps=frozenset({(config_map.namespace, config_map.name)}), targets=frozenset(policy.targets)),
        {policy.name: lambda _target: calculate},
    )
    return lambda: plan


def _note_poll(state: PollState, notes: TargetNotes, records: Sequence[Record]) -> None:
    state.record_poll(records)
    notes.log_notes(records)


def _no_query(_query: AskedQuery) -> Unknown:
    return Unknown("this program does not query Prometheus")
