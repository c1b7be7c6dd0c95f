"""The environment of a cluster: watches, the Lease, memories in ConfigMaps, scale calls and events."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from adapter.foundation.cluster.watch.watch import ClusterWatch
from adapter.foundation.options.clients import kubernetes_client
from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.sources.kubernetes.discovery import KindDiscovery
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.kubernetes.list_watch import WatchSettings
from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
from recommender.commands.run.environment import RunEnvironment
from recommender.commands.run.followed_objects import StatusAccess, follow_objects
from recommender.commands.run.leading import TIMING, Candidate, begin_election
from recommender.configuration.needs import needs_of_one
from recommender.outputs.event_limits import EventLimits
from recommender.outputs.event_rules import event_of_scale_call
from recommender.outputs.events import EventWriter
from recommender.outputs.resize import ResizeAttempt
from recommender.outputs.scale import ScaleHooks, ScaleWriter, longest_fenced_write_seconds
from recommender.running.effects import ClusterEffects, HistoryAlone, ResizeEffects
from recommender.running.leadership import WithoutLease
from recommender.running.lookups import TargetLookups
from recommender.running.memory.config_maps import ConfigMapMemoryStore
from recommender.running.memory.memories import Memories
from recommender.running.memory.store import ProcessMemoryStore
from recommender.running.parameter_config_maps import ParameterConfigMaps
from recommender.running.resizes import RequestWriters
from recommender.running.sizes.capacity_buffer import CapacityBufferAttempt
from recommender.running.sizes.cluster_api import ClusterApiAttempt
from recommender.running.sizes.machine_deletion import MachineDeletion
from recommender.running.sizes.node_removals import NodeRemovals, RemovalParts, are_configured, stopped_removal
from recommender.running.sizes.provider_groups import ProviderAttempt
from recommender.running.sizes.withdrawals import Withdrawals
from recommender.running.sizes.writers import SizeWriters
from recommender.running.writes import Writes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.cluster.values.state import ClusterState
    from adapter.foundation.objects.resources import ResolveResource
    from adapter.foundation.service.server.context import WorkerContext
    from recommender.commands.run.run_settings import RunSettings
    from recommender.commands.run.shared_services import SharedServices
    from recommender.outputs.scale import ScaleOutcome
    from recommender.outputs.wishes import Wish
    from recommender.running.leadership import Leadership
    from recommender.running.plans import PollPlan

_log = logging.getLogger(__name__)


def cluster_environment(settings: RunSettings, context: WorkerContext, parts: SharedServices) -> RunEnvironment:
    """Return the environment of a cluster, and start its tasks; raises StartError."""
    try:
        client = kubernetes_client(settings.objects.cluster)
    except KubernetesError as error:
        raise StartError(f"{error}; or give --objects DIR to do without a cluster") from error
    objects = ObjectClient(client)
    resolve = KindDiscovery(client, pace=parts.pace).resource
    writes = Writes(objects)
    leadership = _leadership(settings, context, parts, objects, writes)
    fence = Fence(longest_fenced_write_seconds(TIMING), leadership.may_write)
    lookups = TargetLookups(objects, resolve, clock=parts.clock)
    memories = _memories(settings, context, parts, writes, fence)
    watch = ClusterWatch(
        client,
        parts.plan().needs,
        lambda name, run: context.tasks.running(name, lambda stop: run(stop.event), reads_only=True),
        WatchSettings(pace=parts.pace, telemetry=parts.watches),
        changed=parts.wake.set,
    )
    config_maps = ParameterConfigMaps(
        objects,
        lambda namespace, name: _default_params(parts.plan(), namespace, name),
        leadership.may_write,
        parts.clock,
        is_dry_run=not settings.writes,
    )
    writing = None
    if settings.writes:
        writing = _effects(
            context,
            parts,
            _Writing(writes, resolve, fence, memories, lookups, objects, partial(watch.state, with_pods=False)),
        )

    status = StatusAccess(objects, fence) if settings.writes else None

    def change(plan: PollPlan) -> None:
        watch.change(plan.needs)
        if writing is not None:
            writing.reconfigured(plan.configuration)

    return RunEnvironment(
        cluster=watch.state,
        config_map=config_maps.read,
        targets=lookups.look,
        leadership=leadership,
        memories=memories,
        effects=writing or HistoryAlone(parts.history),
        change=change,
        refusals=dict if writing is None else writing.refusals,
        has_tried_lists=watch.has_tried_lists,
        follow_objects=partial(
            follow_objects, client, context.tasks, WatchSettings(pace=parts.pace, telemetry=parts.watches), status
        ),
    )


def _leadership(
    settings: RunSettings, context: WorkerContext, parts: SharedServices, objects: ObjectClient, writes: Writes
) -> Leadership:
    election = parts.plan().configuration.leader_election
    if not settings.writes:
        return WithoutLease()
    if not election.enabled:
        _log.warning(
            "leader election is disabled, so this process acts whatever other processes do: run only one replica"
        )
        return WithoutLease()
    candidate = Candidate(settings.namespace, election.name, settings.pod)
    return begin_election(candidate, context, (objects, writes), parts.lease_metrics, parts.wake)


def _memories(
    settings: RunSettings, context: WorkerContext, parts: SharedServices, objects: Writes, fence: Fence
) -> Memories:
    """Return the memories; a process that keeps none in the cluster starts without any."""
    if not settings.writes:
        return Memories(ProcessMemoryStore())
    store = ConfigMapMemoryStore(
        objects, settings.namespace, fence, count=parts.telemetry.memory_write, clock=parts.clock
    )
    context.tasks.running("memory", lambda stop: store.run(stop.event))
    return Memories(store)


class _Writing:
    """The objects that scale calls and events need."""

    def __init__(
        self,
        objects: Writes,
        resolve: ResolveResource,
        fence: Fence,
        memories: Memories,
        lookups: TargetLookups,
        client: ObjectClient,
        cluster: Callable[[], ClusterState],
    ) -> None:
        self.client = client
        self.cluster = cluster
        self.objects = objects
        self.resolve = resolve
        self.fence = fence
        self.memories = memories
        self.lookups = lookups


def _effects(context: WorkerContext, parts: SharedServices, writing: _Writing) -> ClusterEffects:
    events = EventWriter(writing.objects, writing.lookups.uid, parts.telemetry.event, clock=parts.clock)
    context.tasks.running("events", lambda stop: events.run(stop.event))
    limits = EventLimits(parts.telemetry.event, parts.clock)
    hooks = ScaleHooks(
        before_write=lambda wish: writing.memories.store_now(wish.recommendation, wish.target),
        count=parts.telemetry.scale_call,
        on_result=partial(_announce, events, limits),
    )
    writer = ScaleWriter(writing.objects, writing.resolve, writing.fence, hooks)

    def group_written(outcome: ScaleOutcome) -> None:
        parts.size_writes.note(outcome)
        _announce(events, limits, outcome)

    groups = ScaleWriter(
        writing.objects,
        writing.resolve,
        writing.fence,
        replace(hooks, on_result=group_written),
        attempt=ClusterApiAttempt(writing.objects, writing.resolve),
    )
    withdrawals = Withdrawals()

    def buffer_written(outcome: ScaleOutcome) -> None:
        withdrawals.note(outcome)
        _announce(events, limits, outcome)

    def before_buffer(wish: Wish) -> bool:
        # A former size that is put back starts nothing, and its recommendation may have no memory any more.
        return wish.withdraws or hooks.before_write(wish)

    buffers = ScaleWriter(
        writing.objects,
        writing.resolve,
        writing.fence,
        replace(hooks, before_write=before_buffer, on_result=buffer_written),
        attempt=CapacityBufferAttempt(writing.objects, writing.resolve),
    )
    context.tasks.running("scale calls", lambda stop: writer.run(stop.event))
    context.tasks.running("sizes of node groups", lambda stop: groups.run(stop.event))
    context.tasks.running("CapacityBuffers", lambda stop: buffers.run(stop.event))
    requests = RequestWriters(parts.clock.monotonic)

    def requests_written(outcome: ScaleOutcome) -> None:
        requests.note(outcome)
        _announce(events, limits, outcome)

    resizes = ScaleWriter(
        writing.objects,
        writing.resolve,
        writing.fence,
        replace(hooks, on_result=requests_written),
        attempt=ResizeAttempt(writing.client, writing.objects, writing.resolve, parts.clock.wall),
    )
    context.tasks.running("requests of containers", lambda stop: resizes.run(stop.event))
    removals = _removals(parts, writing, events)
    provided = ScaleWriter(
        writing.objects,
        writing.resolve,
        writing.fence,
        replace(hooks, on_result=parts.size_writes.note),
        attempt=ProviderAttempt(parts.providers, removals),
    )
    context.tasks.running("node groups of providers", lambda stop: provided.run(stop.event))
    context.tasks.running("removals of nodes", lambda stop: removals.run(stop.event))
    size_writers = SizeWriters(groups, buffers, writing.resolve, withdrawals, provided)
    # A change is one from the configuration of the start, also in a process that has not led before.
    size_writers.reconfigured(parts.plan().configuration)
    # The last callback runs first: no write may begin once the Lease is being released.
    context.on_stopping(writer.clear)
    context.on_stopping(size_writers.clear)
    context.on_stopping(resizes.clear)
    return ClusterEffects(writer, events, parts.history, size_writers, limits, ResizeEffects(resizes, requests))


def _removals(parts: SharedServices, writing: _Writing, events: EventWriter) -> NodeRemovals:
    return NodeRemovals(
        RemovalParts(
            objects=writing.client,
            writes=writing.objects,
            fence=writing.fence,
            deletion=MachineDeletion(parts.providers, parts.clock.monotonic),
            nodes=writing.cluster,
            is_configured=lambda: are_configured(parts.plan().configuration),
            stopped=lambda mark: stopped_removal(mark, parts.plan().configuration),
            announce=events.add,
            clock=parts.clock,
        )
    )


def _announce(events: EventWriter, limits: EventLimits, outcome: ScaleOutcome) -> None:
    event = event_of_scale_call(outcome)
    if event is not None and limits.permits(outcome.wish.recommendation):
        events.add(event)


def _default_params(plan: PollPlan, namespace: str, name: str) -> Mapping[str, str] | None:
    """Return the default parameters of the first recommendation that reads this ConfigMap and has some."""
    for recommendation in plan.configuration.recommendations:
        found = needs_of_one(recommendation).config_maps.get((namespace, name))
        if found is not None:
            return found
    return None
