"""The environment of a cluster: watches, the Lease, memories in ConfigMaps, and the effects of decisions."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from adapter.foundation.cluster.watch.watch import ClusterWatch
from adapter.foundation.options.clients import kubernetes_client
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.kubernetes.discovery import KindDiscovery
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.kubernetes.lists.list_watch import WatchSettings
from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
from recommender.commands.run.cluster_effects import Writing, cluster_effects
from recommender.commands.run.environment import RunEnvironment
from recommender.commands.run.followed_objects import StatusAccess, follow_objects
from recommender.commands.run.leading import TIMING, begin_election
from recommender.configuration.needs import needs_of_one
from recommender.leader_election.lease_settings import LeaseSettings, unique_identity
from recommender.outputs.write_attempt import longest_fenced_write_seconds
from recommender.running.effects.leader_effects import HistoryAlone
from recommender.running.effects.writes_at_shutdown import Writes
from recommender.running.inputs.own_writes import OwnWrites
from recommender.running.inputs.parameter_config_maps import ParameterConfigMaps
from recommender.running.inputs.target_lookups import TargetLookups
from recommender.running.memory.config_map_store import ConfigMapMemoryStore
from recommender.running.memory.memories import Memories
from recommender.running.memory.store_protocol import ProcessMemoryStore
from recommender.running.polls.leadership import Leadership, WithoutLease
from recommender.running.sizes.capacity_buffer_writer import owner_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from recommender.commands.run.run_settings import RunSettings
    from recommender.commands.run.shared_services import SharedServices
    from recommender.running.inputs.poll_plan import PollPlan

_log = logging.getLogger(__name__)


def cluster_environment(settings: RunSettings, context: WorkerContext, parts: SharedServices) -> RunEnvironment:
    """Return the environment of a cluster, and start its tasks. Raises UsageError."""
    try:
        client = kubernetes_client(settings.objects.cluster)
    except KubernetesError as error:
        raise UsageError(f"{error}; or give --objects DIR to do without a cluster") from error
    objects = ObjectClient(client)
    resolve = KindDiscovery(client, pace=parts.pace).resource
    writes = Writes(objects)
    leadership = _leadership(settings, context, parts, objects, writes)
    fence = Fence(longest_fenced_write_seconds(TIMING), leadership.may_write)
    lookups = TargetLookups(objects, resolve, clock=parts.clock)
    own_writes = OwnWrites(parts.clock.wall)
    parts.lease_metrics.on_change(own_writes.forget)
    # Without a Lease, a former pod may write once more while this one starts, and would be taken for a rival.
    elects = parts.plan().configuration.leader_election.enabled
    memories = _memories(settings, context, parts, writes, fence)
    watching = WatchSettings(pace=parts.pace, telemetry=parts.watches)
    watch = _watch(client, context, parts, watching)
    common = RunEnvironment(
        cluster=watch.state,
        config_map=_config_maps(settings, parts, objects, leadership).read,
        targets=own_writes.mark_replaced(lookups.look) if elects else lookups.look,
        with_own_size=own_writes.with_own_size,
        leadership=leadership,
        memories=memories,
        effects=HistoryAlone(parts.history.add),
        change=lambda plan: watch.change(plan.needs),
        has_tried_lists=watch.has_tried_lists,
        follow_objects=partial(follow_objects, client, context.tasks, watching, None),
    )
    if not settings.writes:
        return common
    cluster = partial(watch.state, with_pods=False)
    owner = owner_of(settings.namespace, parts.plan().configuration.leader_election.name)
    writing = Writing(writes, resolve, fence, memories, lookups, own_writes, objects, owner, cluster)
    effects = cluster_effects(context, parts, writing)

    def change(plan: PollPlan) -> None:
        watch.change(plan.needs)
        effects.reconfigured(plan.configuration)

    return replace(
        common,
        effects=effects,
        change=change,
        refusals=effects.refusals,
        failures=effects.writer.failures,
        settled=effects.settled,
        follow_objects=partial(follow_objects, client, context.tasks, watching, StatusAccess(objects, fence)),
    )


def _watch(
    client: KubernetesClient, context: WorkerContext, parts: SharedServices, watching: WatchSettings
) -> ClusterWatch:
    return ClusterWatch(
        client,
        parts.plan().needs,
        partial(context.tasks.running, reads_only=True),
        watching,
        changed=parts.wake.set,
    )


def _config_maps(
    settings: RunSettings, parts: SharedServices, objects: ObjectClient, leadership: Leadership
) -> ParameterConfigMaps:
    return ParameterConfigMaps(
        objects,
        lambda namespace, name: _default_params(parts.plan(), namespace, name),
        leadership.may_write,
        parts.clock,
        is_dry_run=not settings.writes,
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
    lease = LeaseSettings(
        namespace=settings.namespace, name=election.name, identity=unique_identity(settings.pod), timing=TIMING
    )
    return begin_election(lease, context, objects, writes, parts.lease_metrics)


def _memories(
    settings: RunSettings, context: WorkerContext, parts: SharedServices, objects: Writes, fence: Fence
) -> Memories:
    """Return the memories; a process that stores none in the cluster starts without any."""
    if not settings.writes:
        return Memories(ProcessMemoryStore())
    store = ConfigMapMemoryStore(
        objects, settings.namespace, fence, count=parts.telemetry.count_memory_write, clock=parts.clock
    )
    context.tasks.running("memory", store.run)
    return Memories(store)


def _default_params(plan: PollPlan, namespace: str, name: str) -> Mapping[str, str] | None:
    """Return the default parameters of the first recommendation that reads this ConfigMap and has some."""
    for recommendation in plan.configuration.recommendations:
        found = needs_of_one(recommendation).config_maps.get((namespace, name))
        if found is not None:
            return found
    return None
