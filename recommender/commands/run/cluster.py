"""The world of a cluster: watches, the Lease, memories in ConfigMaps, scale calls and events."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from adapter.cluster.watch import ClusterWatch
from adapter.options.clients import kubernetes_client
from adapter.service.runtime.errors import StartError
from adapter.sources.kubernetes.discovery import KindDiscovery
from adapter.sources.kubernetes.errors import KubernetesError
from adapter.sources.kubernetes.lease import LeaseElector, LeaseSettings, unique_identity
from adapter.sources.kubernetes.lease_rules import LeaseTiming
from adapter.sources.kubernetes.settings import WatchSettings
from adapter.sources.kubernetes.writing import Fence, ObjectClient
from recommender.commands.run.world import World
from recommender.configuration.needs import config_map_in
from recommender.outputs.event_rules import event_of_scale_call
from recommender.outputs.events import EventWriter
from recommender.outputs.scale import MOST_OF_A_WRITE, ScaleHooks, ScaleWriter, longest_fenced_write_seconds
from recommender.outputs.sizes.capacity_buffer import CapacityBufferAttempt
from recommender.outputs.sizes.cluster_api import ClusterApiAttempt
from recommender.running.effects import ClusterEffects, HistoryAlone
from recommender.running.leadership import WakingEvents, WithoutLease
from recommender.running.lookups import TargetLookups
from recommender.running.memory.config_maps import ConfigMapMemoryStore
from recommender.running.memory.memories import Memories
from recommender.running.memory.store import ProcessMemoryStore
from recommender.running.parameter_config_maps import ParameterConfigMaps
from recommender.running.sizing.withdrawals import Withdrawals
from recommender.running.sizing.writers import SizeWriters
from recommender.running.writes import Writes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.objects.resources import ResolveResource
    from adapter.service.server.context import WorkerContext
    from recommender.commands.run.parts import SharedParts
    from recommender.commands.run.settings import RunSettings
    from recommender.outputs.scale import ScaleOutcome
    from recommender.outputs.wishes import Wish
    from recommender.running.leadership import Leadership
    from recommender.running.plans import PollPlan

_log = logging.getLogger(__name__)

RELEASE_SECONDS = 1.5
TIMING = LeaseTiming()


def cluster_world(settings: RunSettings, context: WorkerContext, parts: SharedParts) -> World:
    """Return the world of a cluster, and start its tasks; raises StartError."""
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
        lambda name, run: context.tasks.running(name, lambda stop: run(stop.event)),
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
        writing = _effects(context, parts, _Writing(writes, resolve, fence, memories, lookups))

    def change(plan: PollPlan) -> None:
        watch.change(plan.needs)
        if writing is not None:
            writing.reconfigured(plan.configuration)

    return World(
        cluster=watch.state,
        config_map=config_maps.read,
        targets=lookups.look,
        leadership=leadership,
        memories=memories,
        effects=writing or HistoryAlone(parts.history),
        change=change,
        has_tried_lists=watch.has_tried_lists,
    )


def _leadership(
    settings: RunSettings, context: WorkerContext, parts: SharedParts, objects: ObjectClient, writes: Writes
) -> Leadership:
    election = parts.plan().configuration.leader_election
    if not settings.writes:
        return WithoutLease()
    if not election.enabled:
        # With `proportional` this is the default, as of the peer.
        level = logging.WARNING if settings.stores_memories else logging.INFO
        _log.log(level, "there is no leader election, so this process acts whatever others do: run one replica only")
        return WithoutLease()
    lease = LeaseSettings(
        namespace=settings.namespace, name=election.name, identity=unique_identity(settings.pod), timing=TIMING
    )
    elector = LeaseElector(objects, lease, WakingEvents(parts.lease_metrics, parts.wake))
    context.tasks.running("leader election", lambda stop: elector.run(stop.event))
    context.on_stopping(lambda: release_after_writes(writes, elector))
    return elector


def release_after_writes(writes: Writes, elector: Releasable) -> None:
    """Release the Lease once no write can have an effect any more; if that is not known, it expires by itself."""
    if writes.close(MOST_OF_A_WRITE * longest_fenced_write_seconds(TIMING)):
        elector.release(RELEASE_SECONDS)
    else:
        _log.warning("the Lease is not released: a write is still under way, so the next leader waits for its end")


def _memories(
    settings: RunSettings, context: WorkerContext, parts: SharedParts, objects: Writes, fence: Fence
) -> Memories:
    """Return the memories; a process that keeps none in the cluster starts without any."""
    if not settings.writes or not settings.stores_memories:
        return Memories(ProcessMemoryStore())
    store = ConfigMapMemoryStore(
        objects, settings.namespace, fence, count=parts.telemetry.memory_write, clock=parts.clock
    )
    context.tasks.running("memory", lambda stop: store.run(stop.event))
    return Memories(store)


class Releasable(Protocol):
    """What can be released (`LeaseElector`)."""

    def release(self, seconds: float) -> bool:
        """Let another process lead; returns whether that has succeeded."""
        ...


class _Writing:
    """What scale calls and events need."""

    def __init__(
        self,
        objects: Writes,
        resolve: ResolveResource,
        fence: Fence,
        memories: Memories,
        lookups: TargetLookups,
    ) -> None:
        self.objects = objects
        self.resolve = resolve
        self.fence = fence
        self.memories = memories
        self.lookups = lookups


def _effects(context: WorkerContext, parts: SharedParts, writing: _Writing) -> ClusterEffects:
    events = EventWriter(writing.objects, writing.lookups.uid, parts.telemetry.event, clock=parts.clock)
    context.tasks.running("events", lambda stop: events.run(stop.event))
    hooks = ScaleHooks(
        before_write=lambda wish: writing.memories.store_now(wish.recommendation, wish.target),
        count=parts.telemetry.scale_call,
        on_result=partial(_announce, events, parts.scaled),
    )
    writer = ScaleWriter(writing.objects, writing.resolve, writing.fence, hooks)

    def group_written(outcome: ScaleOutcome) -> None:
        parts.size_writes.note(outcome)
        _announce(events, parts.scaled, outcome)

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
        _announce(events, parts.scaled, outcome)

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
    size_writers = SizeWriters(groups, buffers, writing.resolve, withdrawals)
    # A change is one from the configuration of the start, also in a process that has not led before.
    size_writers.reconfigured(parts.plan().configuration)
    # The last callback runs first: no write may begin once the Lease is being released.
    context.on_stopping(writer.clear)
    context.on_stopping(size_writers.clear)
    return ClusterEffects(writer, events, parts.history, size_writers)


def _announce(events: EventWriter, scaled: Callable[[ScaleOutcome], None], outcome: ScaleOutcome) -> None:
    scaled(outcome)
    event = event_of_scale_call(outcome)
    if event is not None:
        events.add(event)


def _default_params(plan: PollPlan, namespace: str, name: str) -> Mapping[str, str] | None:
    """Return the default parameters of the first recommendation that reads this ConfigMap and has some."""
    for recommendation in plan.configuration.recommendations:
        config_map = config_map_in(recommendation.subject)
        if config_map is not None and (config_map.namespace, config_map.name) == (namespace, name):
            return config_map.default_params
    return None
