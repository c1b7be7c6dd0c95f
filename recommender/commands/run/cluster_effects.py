"""What carries decisions out in a cluster: a writer for each kind of object, removals of nodes, and events."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from recommender.outputs.event_limits import EventLimits
from recommender.outputs.event_rules import event_of_scale_call
from recommender.outputs.events import EventWriter
from recommender.outputs.resize import ResizeAttempt
from recommender.outputs.scale import ScaleHooks, ScaleWriter
from recommender.running.effects import ClusterEffects, ResizeEffects
from recommender.running.resizes import RequestWriters
from recommender.running.sizes.capacity_buffer import CapacityBufferAttempt
from recommender.running.sizes.cluster_api import ClusterApiAttempt
from recommender.running.sizes.machine_deletion import MachineDeletion
from recommender.running.sizes.node_removals import NodeRemovals, RemovalParts, are_configured, stopped_removal
from recommender.running.sizes.provider_groups import ProviderAttempt
from recommender.running.sizes.withdrawals import Withdrawals
from recommender.running.sizes.writers import SizeWriters

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.cluster.values.state import ClusterState
    from adapter.foundation.objects.resources import ResolveResource
    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
    from recommender.commands.run.shared_services import SharedServices
    from recommender.outputs.scale import ScaleOutcome
    from recommender.outputs.wishes import Wish
    from recommender.running.lookups import TargetLookups
    from recommender.running.memory.memories import Memories
    from recommender.running.writes import Writes


class Writing:
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


def cluster_effects(context: WorkerContext, parts: SharedServices, writing: Writing) -> ClusterEffects:
    """Return what carries decisions out in a cluster, and start its tasks."""
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


def _removals(parts: SharedServices, writing: Writing, events: EventWriter) -> NodeRemovals:
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
