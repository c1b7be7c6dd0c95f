"""Carries out decisions in a cluster: writes objects of each kind, removes nodes, and records events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recommender.outputs.event_limits import EventLimits
from recommender.outputs.event_rules import event_of_scale_call
from recommender.outputs.events import EventWriter
from recommender.outputs.resize import ResizeAttempt
from recommender.outputs.scale_attempt import ScaleAttempt
from recommender.outputs.scale_writer import ScaleHooks, ScaleWriter
from recommender.running.effects.leader_effects import ClusterEffects, ResizeEffects
from recommender.running.effects.resize_effects import RequestWriters
from recommender.running.sizes.capacity_buffer_writer import CapacityBufferAttempt
from recommender.running.sizes.cluster_api_writer import ClusterApiAttempt
from recommender.running.sizes.configured_removals import are_configured, removal_rules, stopped_removal
from recommender.running.sizes.former_buffers import FormerBuffers
from recommender.running.sizes.machine_deletion import MachineDeletion
from recommender.running.sizes.node_removals import NodeRemovals
from recommender.running.sizes.provider_group_writer import ProviderAttempt
from recommender.running.sizes.size_writers import SizeWriters
from recommender.running.sizes.withdrawn_buffers import Withdrawals, buffers_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.cluster.values.state import ClusterState
    from adapter.foundation.objects.resources import ResolveResource
    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
    from recommender.commands.run.shared_services import SharedServices
    from recommender.outputs.pending_writes import PendingWrite
    from recommender.outputs.write_attempt import Attempt, ScaleOutcome
    from recommender.running.effects.writes_at_shutdown import Writes
    from recommender.running.inputs.own_writes import OwnWrites
    from recommender.running.inputs.target_lookups import TargetLookups
    from recommender.running.memory.memories import Memories


@dataclass(frozen=True, slots=True)
class Writing:
    """The parts that all writers share: clients, the fence, memories, and the state of the cluster."""

    objects: Writes
    resolve: ResolveResource
    fence: Fence
    memories: Memories
    lookups: TargetLookups
    own_writes: OwnWrites
    client: ObjectClient
    owner: str
    """The owner of written sizes of CapacityBuffers (`owner_of`)."""
    cluster: Callable[[], ClusterState]
    """The state of the cluster, without its pods."""


@dataclass(frozen=True, slots=True)
class _Announcer:
    """Creates events from the outcomes of writes."""

    events: EventWriter
    limits: EventLimits

    def note(self, outcome: ScaleOutcome) -> None:
        """Create the event for an outcome, if it has one and the limits permit it."""
        event = event_of_scale_call(outcome)
        if event is not None and self.limits.permits(outcome.write.recommendation):
            self.events.add(event)

    def after(self, take: Callable[[ScaleOutcome], None]) -> Callable[[ScaleOutcome], None]:
        """Return a function that passes an outcome to `take` before it becomes an event."""

        def noted(outcome: ScaleOutcome) -> None:
            take(outcome)
            self.note(outcome)

        return noted


@dataclass(frozen=True, slots=True)
class _WriterStart:
    """Starts writers, each as a task."""

    context: WorkerContext
    writing: Writing
    hooks: ScaleHooks

    def started(
        self,
        task: str,
        attempt: Attempt,
        on_result: Callable[[ScaleOutcome], None],
        before_write: Callable[[PendingWrite], bool] | None = None,
    ) -> ScaleWriter:
        """Return a writer whose task has started; by default, a recommendation's memory is stored before each write."""
        hooks = replace(self.hooks, on_result=on_result, before_write=before_write or self.hooks.before_write)
        writing = self.writing
        writer = ScaleWriter(writing.objects, writing.resolve, writing.fence, hooks, attempt=attempt)
        self.context.tasks.running(task, writer.run)
        return writer


def cluster_effects(context: WorkerContext, parts: SharedServices, writing: Writing) -> ClusterEffects:
    """Start the tasks that carry decisions out in a cluster, and return the object that passes decisions to them."""
    objects, resolve, clock = writing.objects, writing.resolve, parts.clock
    events = EventWriter(objects, writing.lookups.uid, parts.telemetry.count_event, clock=clock)
    context.tasks.running("events", events.run)
    announcer = _Announcer(events, EventLimits(parts.telemetry.count_event, clock))
    hooks = ScaleHooks(
        before_write=lambda write: writing.memories.store_now(write.recommendation, write.target),
        count=parts.telemetry.count_scale_call,
        on_result=announcer.note,
    )
    start = _WriterStart(context, writing, hooks)
    own = writing.own_writes

    def before_scale_call(write: PendingWrite) -> bool:
        own.begin(write)
        return hooks.before_write(write)

    def before_resize(write: PendingWrite) -> bool:
        own.forget_target(write.target)
        return hooks.before_write(write)

    writer = start.started("scale calls", ScaleAttempt(objects, resolve), announcer.after(own.note), before_scale_call)
    size_writers = _size_writers(start, parts, announcer)
    requests = RequestWriters(clock.monotonic)
    resizes = start.started(
        "requests of containers",
        ResizeAttempt(writing.client, objects, resolve, clock.wall),
        announcer.after(requests.note),
        before_resize,
    )
    # The last callback runs first: no write may begin once the Lease is being released.
    context.on_stopping(writer.clear)
    context.on_stopping(size_writers.clear)
    context.on_stopping(resizes.clear)
    resize_effects = ResizeEffects(resizes, requests)
    return ClusterEffects(writer, events, parts.history.add, size_writers, announcer.limits, resize_effects, own)


def _size_writers(start: _WriterStart, parts: SharedServices, announcer: _Announcer) -> SizeWriters:
    """Return the writers of cluster sizes: for Cluster API objects, for providers, and for CapacityBuffers."""
    objects, resolve = start.writing.objects, start.writing.resolve

    def before_size(write: PendingWrite) -> bool:
        is_stored = start.hooks.before_write(write)
        if is_stored:
            parts.size_writes.note_sending(write)
        return is_stored

    groups = start.started(
        "sizes of node groups",
        ClusterApiAttempt(objects, resolve),
        announcer.after(parts.size_writes.note),
        before_size,
    )
    withdrawals = Withdrawals()

    def before_buffer(write: PendingWrite) -> bool:
        # Restoring a former size has no effects on the memory, and its recommendation may no longer have one.
        return write.withdraws or start.hooks.before_write(write)

    buffers = start.started(
        "CapacityBuffers",
        CapacityBufferAttempt(objects, resolve, start.writing.owner),
        announcer.after(withdrawals.note),
        before_buffer,
    )
    former = _former_buffers(parts, start.writing, withdrawals)
    start.context.tasks.running("former CapacityBuffers", former.run)
    removals = _removals(parts, start.writing, announcer.events)
    start.context.tasks.running("removals of nodes", removals.run)
    provided = start.started(
        "node groups of providers",
        ProviderAttempt(parts.providers, removals.begin, start.writing.cluster, parts.clock),
        parts.size_writes.note,
        before_size,
    )
    writers = SizeWriters(groups, buffers, resolve, withdrawals, provided)
    # Changes are relative to the configuration of the start, even in a process that has not led before.
    writers.reconfigured(parts.plan().configuration)
    return writers


def _former_buffers(parts: SharedServices, writing: Writing, withdrawals: Withdrawals) -> FormerBuffers:
    return FormerBuffers(
        objects=writing.client,
        resolve=writing.resolve,
        fence=writing.fence,
        owner=writing.owner,
        found=withdrawals.add,
        are_configured=lambda: bool(buffers_of(parts.plan().configuration)),
        monotonic=parts.clock.monotonic,
    )


def _removals(parts: SharedServices, writing: Writing, events: EventWriter) -> NodeRemovals:
    return NodeRemovals(
        objects=writing.client,
        writes=writing.objects,
        fence=writing.fence,
        deletion=MachineDeletion(parts.providers, parts.clock.monotonic),
        cluster=writing.cluster,
        is_configured=lambda: are_configured(parts.plan().configuration),
        stopped=lambda mark: stopped_removal(mark, parts.plan().configuration),
        rules=lambda mark: removal_rules(mark, parts.plan().configuration),
        announce=events.add,
        owner=writing.owner,
        clock=parts.clock,
    )
